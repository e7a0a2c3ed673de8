#!/usr/bin/env bash
# A driver with a bug that an agent can reach: it costs a supervisor each time it is met, but the run
# is given up before the others are, and its output is not read again.
. tests/integration/lib.sh
. tests/integration/runs.sh

mkdir -p "$T/libexec"
cp "$BIN"/agentbox-* "$T/libexec/"
cp "$TESTS/fakes/crashing_supervisor" "$T/libexec/agentbox-supervisor"
script bad 'trap : TERM; echo before; sleep 1; echo crash; while :; do sleep 1; done'
script good 'echo on; sleep 12; echo off'
start_daemon --config "$T/etc/agentboxd.yaml" --libexec "$T/libexec" ||
	{ echo "not ok 1 - start"; echo 1..1; exit 1; }

run good other x &
other=$!
abctl run bad -s u/bad -p x --detach --json >"$T/bad.run"
id=$(json 'l.runId' <"$T/bad.run")
ok 'a run whose output kills supervisors ends' wait_for 60 ended
is 'as interrupted' "$(status)" interrupted
like 'and says why' "$(abctl show "$id" --json | json 'l.result.error')" '3 supervisors in a row ended while they read'
is 'three were killed by it, and no fourth' "$(grep -c 'supervisor (pid [0-9]*) ended with signal 11' "$T/log")" 3
abctl logs "$id" --json >"$T/log.bad"
is 'what it said before is there, once' "$(json 'e.filter(x=>x.type==="agent.message").map(x=>x.text).join("")' <"$T/log.bad")" before
# shellcheck disable=SC2016 # for the inner shell
ok 'its jail is gone' wait_for 20 sh -c '! ps -eo args | grep -q "[e]cho crash"'
wait "$other"
is 'another run went on meanwhile' "$(json 'l.result.status' <"$T/other.out")" succeeded
is 'and has all it said' "$(text other)" "$(printf 'on\noff')"
run good bad x
is 'its session takes further runs' "$(json 'l.result.status' <"$T/bad.out")" succeeded

# the word is taken back by a line that is understood
script twice 'trap : TERM; echo a; while [ ! -e /tmp/go ]; do sleep 0.2; done; echo b; sleep 1; echo c'
begin twice kept
for _ in 1 2 3 4; do
	kill_child agentbox-supervisor
done
abctl exec u/kept -- touch /tmp/go >/dev/null
ok 'four that were killed from outside do not count' wait_for 60 ended
is 'it ends well' "$(status)" succeeded
finish
