#!/usr/bin/env bash
# Who may die, what dies with it, and what comes back.
. tests/integration/lib.sh

mkdir -p "$T/etc/harnesses"
printf -- '---\nbackend: exec\ncommand: [sh, -c, "echo on; sleep 1000"]\n---\n' >"$T/etc/harnesses/sleeper.md"
: >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
sleeper() {
	abctl run sleeper -s "u/$1" --detach --json >"$T/run" && id=$(json 'l.runId||l.run' <"$T/run")
	wait_for 10 sh -c "$BIN/abctl --socket $T/sock logs $id --json | grep -q agent.message"
}
answers() { abctl version --json; }
status() { abctl show "$1" --json | json 'l.status||l.result.status'; }

sleeper a
ok 'a run is there' test -n "$(jail_processes)"
super=$(child_pid agentbox-supervisor)
abctl jail -- sleep 1000 >/dev/null 2>"$T/jail.err" &
jail=$!
all_sleep() { [ "$(jail_processes | grep -c ' sleep 1000')" = 3 ]; }
ok 'and a command of a client' wait_for 10 all_sleep
kill -9 "$super"
start=$(date +%s%N)
ok 'the socket answers again after SIGKILL of the supervisor' wait_for 5 answers
ms=$((($(date +%s%N) - start) / 1000000))
ok "within a second (${ms} ms)" test "$ms" -lt 1500
ok 'by another process' test "$(child_pid agentbox-supervisor)" != "$super"
wait "$jail"
is 'a command of a client has ended with it' $? 111
like 'which the client is told' "$(cat "$T/jail.err")" 'supervisor.*(ended|replaced).*command.*ended'
is 'the run goes on' "$(status "$id")" running
ok 'in its jail' test -n "$(jail_processes)"
like 'its events are there up to then' "$(abctl logs "$id" --json)" agent.message
abctl cancel "$id" >/dev/null
ok 'it can be cancelled' wait_for 10 sh -c "$BIN/abctl --socket $T/sock show $id --json | grep -q cancelled"
ok 'and ends' wait_for 10 sh -c "$BIN/abctl --socket $T/sock show $id --json | grep -q endedAt"
ok 'nothing of it is left' wait_for 3 no_jail_processes
is 'run.done is its last' "$(abctl logs "$id" --json | json 'l.type+l.result.status')" run.donecancelled
timeout 60 "$BIN/abctl" --socket "$T/sock" run hello -s u/a -p again --json >"$T/again"
is 'its session works' "$(json 'l.result.status' <"$T/again")" succeeded

sleeper b
egress=$(child_pid agentbox-egress)
kill -9 "$egress"
ok 'egress comes back' wait_for 3 sh -c "p=\$(pgrep -P $DAEMON -f agentbox-egress) && test \$p != $egress"
is 'and the run lives on' "$(status "$id")" running
abctl cancel "$id" >/dev/null

sleeper c
abctl jail -- sh -c 'setsid sleep 1000 & sleep 1000' >/dev/null 2>&1 &
sleep 1
# Stopped and frozen ones: neither runs a line of code before it dies.
for pid in $(jail_processes | awk '/sleep/ { print $2 }'); do kill -STOP "$pid"; done
frozen=$(find "$(daemon_cgroup)" -mindepth 2 -name cgroup.freeze | tail -n 1)
echo 1 >"$frozen"
ok 'a jail is frozen' wait_for 5 grep -q 'frozen 1' "${frozen%freeze}events"
session=$(json 'l.sessionId||l.session' <"$T/run")
super=$(child_pid agentbox-supervisor)
egress=$(child_pid agentbox-egress)
kill -9 "$DAEMON"
wait "$DAEMON" 2>/dev/null
DAEMON=''
ok 'SIGKILL of agentboxd: no process of any jail survives 2 s' wait_for 2 no_jail_processes
ok 'nor the supervisor' wait_for 2 not kill -0 "$super"
ok 'nor egress' wait_for 2 not kill -0 "$egress"
start_daemon --config "$T/etc/agentboxd.yaml"
# it is told once it is on the disk
interrupted() { [ "$(status "$id")" = interrupted ]; }
ok 'the next start says interrupted' wait_for 5 interrupted
is 'after how long, from its start to where it was found' "$(abctl show "$id" --json | json \
	'(r=>r.durationMs>=1000&&r.durationMs===Date.parse(l.endedAt)-Date.parse(l.startedAt)&&r.queuedMs<60000)(l.result)')" true
like 'sessions are kept' "$(abctl sessions --json)" "$session"
is 'and usable' "$(abctl run hello -s u/c -p again --json | json 'l.result.status')" succeeded
is 'seq goes on without a gap' "$(curl -sS --unix-socket "$T/sock" "http://x/v1/sessions/$session/events" -H 'Accept: application/x-ndjson' | json 'e.every((x,i)=>x.seq===i+1||e.some(y=>y.type==="log.gap"))')" true
cgroup=$(daemon_cgroup)
ok 'its cgroup is there' test -d "$cgroup"
ok 'a graceful stop' stop_daemon TERM
ok 'leaves no cgroup' not test -e "$cgroup"
ok 'no mount' not grep -q "$T" /proc/self/mountinfo

"$BIN/agentboxd" --state "$T/state" --socket "$T/sock" --config "$T/etc/agentboxd.yaml" 2>/dev/null &
DAEMON=$!
wait_for 10 answers
"$BIN/agentboxd" --state "$T/state" --socket "$T/sock2" 2>"$T/err"
is 'a second daemon on one state directory is refused' $? 111
like 'and says why' "$(cat "$T/err")" 'another agentboxd|in use|already'
finish
