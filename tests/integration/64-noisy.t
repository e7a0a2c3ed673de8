#!/usr/bin/env bash
# One jail takes all it gets of one thing; the run of another keeps its latency, and nothing of the
# daemon grows.  Where the host has no cpu controller a share of the processor cannot be promised:
# there the others must come through at all, and the crowds are smaller.
. tests/integration/lib.sh

mkdir -p "$T/etc/policy" "$T/etc/harnesses" "$T/tools"
cp "$TESTS/fakes/noise" "$T/tools/"
: >"$T/etc/agentboxd.yaml"

# Whatever agentboxd has been started with, a jail goes before nobody.
scheduling() { cut -d' ' -f18,19,40,41 "/proc/$1/stat"; }
inside() { abctl jail -- sh -c 'cut -d" " -f18,19,40,41 /proc/self/stat'; }
nice_of() { awk '{ print $19 }' "/proc/$1/stat"; }
if chrt -r -p 1 $$ && renice -n -10 -p $$ >/dev/null; then
	start_daemon || { echo "not ok 1 - start"; echo 1..1; exit 1; }
	chrt -o -p 0 $$
	is 'a daemon that was started as a realtime process stays one' "$(scheduling "$DAEMON")" '-2 -10 1 2'
	is 'its jails are none' "$(inside 2>/dev/null)" '20 0 0 0'
	stop_daemon
	renice -n 0 -p $$ >/dev/null
fi

start_daemon || { echo "not ok 1 - start"; echo 1..1; exit 1; }
case $(abctl doctor --json | json 'l.layers.filter(x=>x.have==="yes").map(x=>x.layer).join(" ")') in
*limit.memory*limit.cpu*) share=1 pids=512 SAMPLES=25 ;;
*) share=0 pids=32 SAMPLES=10 ;;
esac
is 'a daemon that was started as any other goes before them' "$(nice_of "$DAEMON")" -5
is 'as its children do' "$(nice_of "$(child_pid agentbox-supervisor)")" -5
is 'and its jails do not' "$(inside 2>/dev/null)" '20 0 0 0'
stop_daemon

cat >"$T/etc/policy/noise.yaml" <<YAML
limits: { pids: $pids, disk: 64M, inodes: 20000, shm: 32M, tmp: 32M, nofile: 1024, memory: 256M }
filesystem:
  mounts:
    - { source: '$T/tools', target: /tools }
YAML
harness() { printf -- '---\nbackend: exec\npolicy: %s\ncommand: [sh]\nlimits: { timeoutMs: 600000, outputBytes: %s }\n---\n' "$2" "$3" >"$T/etc/harnesses/$1.md"; }
harness noise noise 8G
harness calm default 1M
cat >"$T/etc/harnesses/large.md" <<'MD'
---
backend: exec
command: [sh, -c, "cat >/dev/null; head -c 12000000 /dev/zero | tr '\\0' x"]
---
MD
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
calm=$(abctl run calm -s u/calm -p 'echo here; sleep 100000' --detach --json | json 'l.runId')
session=$(abctl show "$calm" --json | json 'l.sessionId')
latency() { timeout 300 python3 tests/integration/latency.py "$T/sock" "$session" "$SAMPLES"; }
rss() { awk '/VmRSS/ { print $2 }' "/proc/$1/status"; }
says_ready() { abctl logs "$1" --json | grep -q '"text":"ready'; }
running() { [ "$(abctl show "$1" --json | json 'l.state')" = running ]; }

# the pools and caches are warm then
wait_for 30 running "$calm"
for i in 1 2; do latency; done >/dev/null
before="$(rss "$DAEMON") $(rss "$(child_pid agentbox-supervisor)") $(rss "$(child_pid agentbox-egress)")"

# A jail of its own, or, where the noise is output, a run: that goes through drivers and the log.
begin() {
	case $1 in
	output | lines)
		run=$(abctl run noise -s "u/$1" -p "exec /tools/noise $1" --detach --json | json 'l.runId')
		wait_for 60 says_ready "$run"
		;;
	bomb)
		: >"$T/codes"
		while :; do
			abctl jail --policy noise -- /tools/noise memory
			echo $? >>"$T/codes"
		done >/dev/null 2>&1 &
		jail=$!
		wait_for 60 grep -q . "$T/codes"
		;;
	*)
		: >"$T/said"
		# not abctl(): of that a kill would end the shell alone
		"$BIN/abctl" --socket "$T/sock" jail --policy noise --env CEILING=134217728 -- /tools/noise "$1" >"$T/said" 2>/dev/null &
		jail=$!
		wait_for 60 grep -q ready "$T/said"
		;;
	esac
}
end() {
	case $1 in
	output | lines) abctl cancel "$run" --now >/dev/null && wait_for 30 not running "$run" ;;
	*) kill "$jail" && { wait "$jail" 2>/dev/null || true; } ;;
	esac
}
# noisy KIND: two lines of "p50 p95", before and in the noise
noisy() {
	latency
	begin "$1" || echo 'no noise'
	latency
	end "$1" || echo 'no end'
}
# What else the machine does hits one and not the other: the best of three counts.
keeps() {
	local try quiet loud
	for try in 1 2 3; do
		noisy "$1" >"$T/noisy"
		read -r _ quiet <"$T/noisy"
		loud=$(awk 'NR == 2 { print $2 }' "$T/noisy")
		[ "$(wc -l <"$T/noisy")" = 2 ] && [ "$loud" -gt 0 ] || return 1
		[ "$share" = 0 ] && return 0
		[ "$loud" -lt $((3 * quiet)) ] && return 0
	done
	return 1
}

# memory: below the limit; bomb: far above it, one jail after the other, which only a limit can bear
for kind in forks sessions spin fds disk inodes shm memory output lines $([ $share = 0 ] || echo bomb); do
	ok "another run keeps its latency beside: $kind" keeps "$kind"
	sed 's/^/# /' "$T/noisy"
done
[ $share = 0 ] || is 'each bomb is ended by its limit' "$(sort -u "$T/codes")" 137
is 'the run beside all this goes on' "$(abctl show "$calm" --json | json 'l.state')" running

ok 'large prompts, and lines as large' python3 tests/integration/large.py "$T/sock" large
# KB that each may have grown: agentboxd and egress keep nothing; the supervisor the holes between what
# it keeps, whatever the hundred million lines that came and the 64 MB of prompts.
GROWTH='1024 32768 2048'
flat() {
	local now
	now="$(rss "$DAEMON") $(rss "$(child_pid agentbox-supervisor)") $(rss "$(child_pid agentbox-egress)")"
	echo "resident KB before: $before, now: $now"
	awk 'NR == 1 { split($0, b) } NR == 2 { split($0, n) } NR == 3 { for (i = 1; i <= 3; i++) bad += n[i] > b[i] + $i }
		END { exit bad != 0 || NR != 3 }' <<<"$before
$now
$GROWTH"
}
sanitized || ok 'agentboxd, supervisor and egress have not grown' wait_for 5 flat
flat | sed 's/^/# /'
abctl cancel "$calm" --now >/dev/null
ok 'no process of a jail is left' wait_for 10 no_jail_processes
finish
