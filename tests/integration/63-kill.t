#!/usr/bin/env bash
# 200 processes that do not want to go (forking, deaf, stopped, traced, daemonized, in the disk, in
# vfork, spinning): the word to end them and their deadline leave nothing, at once.
. tests/integration/lib.sh

mkdir -p "$T/etc/policy" "$T/etc/harnesses" "$T/tools"
cp "$TESTS/fakes/swarm" "$T/tools/"
cat >"$T/etc/policy/crowd.yaml" <<YAML
seccomp: { debug: true }
limits: { pids: 600 }
filesystem:
  mounts:
    - { source: '$T/tools', target: /tools }
YAML
printf -- '---\nbackend: exec\npolicy: crowd\ncommand: [sh]\nlimits: { timeoutMs: %s }\n---\n' 600000 >"$T/etc/harnesses/crowd.md"
printf -- '---\nbackend: exec\npolicy: crowd\ncommand: [sh]\nlimits: { timeoutMs: %s }\n---\n' 5000 >"$T/etc/harnesses/late.md"
: >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }

# What a quiet machine does in 50 ms, with room for one that builds and tests beside it.
LIMIT_MS=2000
crowd() {
	run=$(abctl run "$1" -s u/kill -p "exec /tools/swarm 200 $2" --detach --json | json 'l.runId')
	wait_for 30 ready
}
# the forkers are never there when ps looks
many() { [ "$(find "$(daemon_cgroup)" -name cgroup.procs -exec cat {} + | wc -l)" -gt 100 ]; }
ready() { abctl logs "$run" --json | grep -q '"text":"ready'; }
status() { abctl show "$run" --json | json 'l.status'; }
over() { [ "$(status)" = "$1" ]; }
now_ms() { echo $(($(date +%s%N) / 1000000)); }
# ends WORD...: cancels and waits for the end, in $ms
ends() {
	local begun
	begun=$(now_ms)
	abctl cancel "$run" "$@" >/dev/null
	abctl logs "$run" -f >/dev/null 2>&1
	ms=$(($(now_ms) - begun))
}

for kind in '' forker deaf stopped traced daemonized disk vfork; do
	ok "the crowd is there: ${kind:-all kinds}" crowd crowd "$kind"
	ok 'more than a hundred of them' wait_for 10 many
	ends --now
	is 'cancelled' "$(status)" cancelled
	is 'with no process left' "$(jail_processes)" ''
	ok "at once ($ms ms)" test "$ms" -lt $LIMIT_MS
done

crowd late ''
ok 'a deadline' wait_for 30 over timeout
is 'leaves no process' "$(jail_processes)" ''
took=$(abctl show "$run" --json | json 'l.result.durationMs')
ok "and is kept ($took ms)" test "$took" -lt $((5000 + LIMIT_MS))

crowd crowd deaf
ends
ok "who is asked first has three seconds ($ms ms)" test "$ms" -ge 2900 -a "$ms" -lt $((3000 + LIMIT_MS))
is 'and then nothing is left' "$(jail_processes)" ''
crowd crowd deaf
abctl cancel "$run" >/dev/null
ends
ok "asked twice, none ($ms ms)" test "$ms" -lt $LIMIT_MS
is 'a word that is none is refused' "$(curl -sS -X DELETE -o /dev/null -w '%{http_code}' --unix-socket "$T/sock" "http://x/v1/runs/$run?now=soon")" 400
is 'nothing of it all is left' "$(find "$(daemon_cgroup)" -mindepth 1 -type d -name 'jail-*' -exec cat {}/cgroup.procs \;)" ''
finish
