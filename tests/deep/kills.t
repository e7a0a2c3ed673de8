#!/usr/bin/env bash
# Supervisor, egress and agentboxd are killed KILLS (100) times, at random moments, while clients submit
# and follow: nothing that was acknowledged is lost, nothing is done twice, and nothing is left behind.
# KILLS_SEED repeats a course.
. tests/integration/lib.sh
. tests/integration/runs.sh

KILLS=${KILLS:-100}
RANDOM=${KILLS_SEED:=$((RANDOM))}
export KILLS_SEED
echo "# KILLS_SEED=$KILLS_SEED"
# An agent whose prompt does not come has nothing to do: agentboxd died on the way.
body='m=$(cat); [ "$m" ] || exit 9; echo "$m" >>ledger; for i in 0 1 2 3 4 5 6 7; do echo "$m $i"; sleep 0.03; done'
keep='rm -rf out; mkdir out; yes "$m" | head -n 2000 >out/file'
script lines "$body; $keep" 'artifacts: [out/*]'
script twice "$body; [ \"\$(grep -cx \"\$m\" ledger)\" = 2 ] || exit 3; $keep" 'artifacts: [out/*]' \
	'retry: { maxAttempts: 3, backoffMs: 50 }'
echo 'runs: { max: 6 }' >"$T/etc/agentboxd.yaml"
up() { start_daemon --config "$T/etc/agentboxd.yaml"; }
up || { echo "not ok 1 - start"; echo 1..1; exit 1; }
number() { abctl stats --json | json "l.$1"; }
quiet() { [ "$(number 'runsRunning+l.runsQueued+l.jails')" = 0 ]; }
killed() { kill -9 "$(child_pid "$1")" 2>/dev/null; }

python3 tests/deep/kills.py "$T/sock" "$T/stop" >"$T/wrong" 2>"$T/numbers" &
clients=$!
declare -A kills=([agentboxd]=0 [agentbox-supervisor]=0 [agentbox-egress]=0)
# A supervisor that is killed before it has lived for a second starts later each time: one in three may.
for n in $(seq "$KILLS"); do
	sleep "0.$(printf %02d $((RANDOM % 90 + 5)))"
	case $((RANDOM % 10)) in
	0 | 1)
		what=agentboxd
		stop_daemon KILL
		up || { echo "Bail out! agentboxd does not start again"; exit 1; }
		;;
	2) what=agentbox-egress && killed $what ;;
	*) what=agentbox-supervisor && killed $what ;;
	esac 2>/dev/null
	kills[$what]=$((kills[$what] + 1))
	[ $((RANDOM % 3)) = 0 ] || wait_for 30 abctl version
done
touch "$T/stop"
wait "$clients"
is 'the clients come to their end' "$?" 0
sed 's/^/# /' "$T/numbers"
echo "# killed: agentboxd ${kills[agentboxd]}, supervisor ${kills[agentbox-supervisor]}, egress ${kills[agentbox-egress]}"
is 'every promise was kept' "$(head -n 30 "$T/wrong")" ''
runs=$(sed -n 's/^# \([0-9]*\) accepted.*/\1/p' "$T/numbers")
ok "it was under load (${runs:-0} runs)" test "${runs:-0}" -ge "$KILLS"
ok 'all is quiet' wait_for 60 quiet
ok 'no process of a jail' wait_for 20 no_jail_processes
no_trash() { [ -z "$(ls -A "$T/state/trash")" ]; }
ok 'no trash' wait_for 30 no_trash
# A session is a link to its directory.
abctl sessions --json | json 'l.sessions.map(x=>x.sessionId).join("\n")' >"$T/ids"
find "$T/state/sessions" -type l -maxdepth 1 -printf '%f\n' | grep -vxFf "$T/ids" >"$T/strays"
find "$T/state/sessions" -mindepth 1 -maxdepth 1 -type d |
	grep -vxFf <(find "$T/state/sessions" -type l -exec readlink -f {} +) >>"$T/strays"
is 'no directory without a session' "$(cat "$T/strays")" ''
cgroup=$(daemon_cgroup)
ok 'it stops' stop_daemon TERM
ok 'and leaves no cgroup' test ! -e "$cgroup"
is 'and no mount' "$(grep -c "$T" /proc/self/mountinfo)" 0
finish
