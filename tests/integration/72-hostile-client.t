#!/usr/bin/env bash
# More of hostile and careless clients: every oddity of HTTP, bodies, queries and frames has a clear
# answer; who vanishes at any moment leaves nothing; races end as if one came after the other.
. tests/integration/lib.sh

mkdir -p "$T/etc/harnesses"
printf -- '---\nbackend: exec\ncommand: [sh, -c, "echo on; sleep 1000"]\n---\n' >"$T/etc/harnesses/sleeper.md"
: >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
super=$(child_pid agentbox-supervisor)
number() { abctl stats --json | json "l.$1"; }
quiet() { [ "$(number 'runsRunning+l.runsQueued+l.jails')" = 0 ] && [ "$(number connections)" -le 1 ]; }
hostile() { is "$2" "$(timeout 120 python3 tests/integration/hostile_client.py "$T/sock" "$1" 2>&1)" ''; }

hostile http 'HTTP: broken, too large, pipelined'
hostile query 'queries, paths and Last-Event-ID'
hostile bodies 'every field with every wrong type'
ok 'what was accepted comes to its end' wait_for 60 quiet
hostile frames 'frames that a client may not send, and those it may'
ok 'their jails are gone' wait_for 30 quiet
hostile vanish 'vanishing at every moment'
ok 'leaves no jail and no connection' wait_for 60 quiet
hostile races 'one key, cancel and delete, all at once'
ok 'and nothing is stuck' wait_for 60 quiet
is 'no run failed over it' "$(number 'runs.failed+l.runs.interrupted')" 0
ok 'no process of a jail' wait_for 5 no_jail_processes
is 'the supervisor is the same process' "$(child_pid agentbox-supervisor)" "$super"
is 'it had nothing to complain of' "$(grep -c 'agentbox-supervisor: error' "$T/log")" 0
finish
