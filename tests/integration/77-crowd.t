#!/usr/bin/env bash
# A hundred jails alive while runs start, end in every way and are cancelled at random: each has the
# status it must have, and nothing is left.  CROWD_SECONDS (20) is how long, CROWD_SEED repeats a course.
. tests/integration/lib.sh

export CROWD_SEED=${CROWD_SEED:-$RANDOM}
echo "# CROWD_SEED=$CROWD_SEED"
mkdir -p "$T/etc/harnesses"
harness() { printf -- '---\nbackend: exec\ncommand: [bash]\nlimits: { timeoutMs: %s, outputBytes: 1M }\n---\n' "$2" >"$T/etc/harnesses/$1.md"; }
harness crowd 600000
harness late 700
echo 'runs: { max: 128 }' >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
crowd() { python3 tests/integration/crowd.py "$T/sock" "$1" >"$T/wrong" 2>"$T/numbers"; }
number() { abctl stats --json | json "l.$1"; }
quiet() { [ "$(number 'runsRunning+l.runsQueued+l.jails')" = 0 ]; }

fds() { find "/proc/$1/fd" -type l | wc -l; }
# Blocks of user ids are locked bytes of the lease table.
leases() {
	cat "/proc/$DAEMON"/fdinfo/* 2>/dev/null | awk '/^lock:.*OFDLCK/ { n += $NF - $(NF - 1) + 1 } END { print n + 0 }'
}
measure() {
	echo "fd-agentboxd $(fds "$DAEMON")"
	echo "fd-supervisor $(fds "$(child_pid agentbox-supervisor)")"
	echo "fd-egress $(fds "$(child_pid agentbox-egress)")"
	echo "mounts $(wc -l <"/proc/$DAEMON/mountinfo")"
	echo "cgroups $(find "$(daemon_cgroup)" -type d | wc -l)"
	echo "leases $(leases)"
	echo "children $(pgrep -P "$DAEMON" | wc -l)"
	echo "trash $(find "$T/state/trash" -mindepth 1 | wc -l)"
	echo "sessions $(find "$T/state/sessions" -mindepth 1 -maxdepth 1 -type d | wc -l)"
}
settled() { measure >"$T/now" && cmp -s "$T/before" "$T/now"; }
resident() { awk '/VmRSS/ { print $2 }' "/proc/$1/status"; }

ok 'every session was used once' crowd 3
cat "$T/wrong"
wait_for 60 quiet
sleep 1
measure >"$T/before"
sed 's/^/# /' "$T/before"
before=$(resident "$DAEMON")
ok 'the crowd came and went' crowd "${CROWD_SECONDS:-20}"
read -r most runs <"$T/numbers"
is 'every run got the status it must have, no log has a hole' "$(head -n 20 "$T/wrong")" ''
ok "$most jails were alive at once" test "$most" -ge 95
ok "in $runs runs" test "$runs" -gt 100
ok 'all is quiet' wait_for 60 quiet
ok 'nothing more is held than before' wait_for 30 settled || diff "$T/before" "$T/now" | sed 's/^/# /'
after=$(resident "$DAEMON")
sanitized || ok "agentboxd has not grown ($before KB, $after KB)" test "$after" -le $((before + 1024))
ok 'no process of a jail' wait_for 5 no_jail_processes
finish
