#!/usr/bin/env bash
# exec in a session and the session's runs: one workspace, one jail at a time.
. tests/integration/lib.sh

mkdir -p "$T/harnesses"
cat >"$T/agentboxd.yaml" <<YAML
harness_dirs: [$T/harnesses]
YAML
cat >"$T/harnesses/slow.md" <<'MD'
---
name: slow
description: runs for a while
backend: exec
command: [sh, -c, "echo up; sleep 60"]
---
MD
cat >"$T/harnesses/quick.md" <<'MD'
---
name: quick
description: notes that it ran
backend: exec
command: [sh, -c, "echo ran >>ran; cat held 2>/dev/null; true"]
---
MD
cat >"$T/harnesses/chatty.md" <<'MD'
---
name: chatty
description: half a million short lines
backend: exec
command: [sh, -c, "yes | head -n 500000"]
---
MD
cat >"$T/harnesses/leaves.md" <<'MD'
---
name: leaves
description: leaves many files
backend: exec
command: [sh, -c, "mkdir -p out; cd out; seq 3000 | xargs touch"]
artifacts: [out/*]
---
MD
start_daemon --config "$T/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }

status() { abctl show "$1" --json | json 'l.status'; }
has_status() { [ "$(status "$1")" = "$2" ]; }
detach() { abctl run "$@" --detach --json | json 'l.runId'; }

abctl run quick -s u/a -p x --json >"$T/first" 2>&1
session=$(json 'l.session' <"$T/first")

# A command in an idle session has the workspace for itself; a run waits for it.
abctl exec "$session" -- sh -c 'echo yes >held; sleep 3; cat ran | wc -l; rm held' >"$T/exec.out" 2>"$T/exec.err" &
exec_pid=$!
held=$T/state/sessions/$session/workspace/held
ok 'a command in an idle session makes a jail' wait_for 20 test -e "$held"
joined() { [ "$(abctl exec "$session" -- sh -c "$1" 2>/dev/null)" = joined ]; }
ok 'and another joins it' joined 'test -e held && echo joined'
run=$(detach quick -s u/a -p x)
sleep 0.5
is 'a run waits for it' "$(status "$run")" queued
like 'the session cannot be deleted meanwhile' "$(abctl session rm "$session" 2>&1)" 'in use'
wait $exec_pid
is 'the command ends well' "$?" 0
is 'and saw no other run' "$(tr -d ' ' <"$T/exec.out")" 1
ok 'then the run goes on' wait_for 30 has_status "$run" succeeded
is 'without what the command removed' "$(abctl show "$run" --json | json 'l.result.finalText')" ''

# The jail lives until the last of its commands has ended, whichever that is.
# of subshells alone, whose process is the client then
command_in() { exec "$BIN/abctl" --socket "$T/sock" exec "$session" -- sh -c "$1"; }
two() { # FIRST: and another that joins its jail and waits for a file
	command_in "echo >held; $1" >"$T/exec.out" 2>&1 &
	exec_pid=$!
	wait_for 20 test -e "$held"
	command_in 'rm held; until [ -e go ]; do sleep 0.1; done; rm go; echo last' >"$T/last.out" 2>"$T/last.err" &
	last_pid=$!
	ok 'another command joins the first' wait_for 20 not test -e "$held"
	run=$(detach quick -s u/a -p x)
}
then_last() {
	sleep 0.5
	is 'a run waits for the other' "$(status "$run")" queued
	ok 'whose jail may be joined' joined 'test ! -e go && touch go && echo joined'
	wait $last_pid
	is 'which goes on to its own end' "$? $(cat "$T/last.out" "$T/last.err")" '0 last'
	ok 'then the run comes' wait_for 30 has_status "$run" succeeded
}
two 'sleep 1; exit 3'
wait $exec_pid
is 'the first ends as it likes' $? 3
then_last
hung_up() { [ "$(command_in 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\0" " " | grep -c "sleep 100[0]"' 2>/dev/null)" = 0 ]; }
two 'exec sleep 1000'
ok 'it goes on' not hung_up
kill -9 $exec_pid
wait $exec_pid 2>/dev/null
ok 'the first loses its client and is ended' wait_for 20 hung_up
then_last

# A client that does not read the rest of its command's output keeps nobody waiting.
# shellcheck disable=SC2216 # what does not read is the point
(abctl exec "$session" -- sh -c 'head -c 200000 /dev/zero' | sleep 20) &
slow_client=$!
sleep 1
run=$(detach quick -s u/a -p x)
ok 'a slow reader does not keep the session' wait_for 15 has_status "$run" succeeded
kill $slow_client 2>/dev/null

# A client that goes away: its jail goes, and the run that waited comes.
"$BIN/abctl" --socket "$T/sock" exec "$session" -- sleep 100 2>/dev/null &
gone=$!
sleep 0.7
run=$(detach quick -s u/a -p x)
sleep 0.3
is 'waiting again' "$(status "$run")" queued
kill -9 $gone
wait $gone 2>/dev/null
ok 'a client that is killed frees it' wait_for 15 has_status "$run" succeeded

# Into a run's jail.
run=$(detach slow -s u/a -p x)
wait_for 20 has_status "$run" running
ok 'a command joins the jail of a run' wait_for 20 joined 'echo joined'
"$BIN/abctl" --socket "$T/sock" jail -- sleep 100 2>/dev/null &
jail=$!
ps_has() { abctl ps --json | json "$1" | grep -qx true; }
ok 'ps shows the run with its jail' wait_for 10 ps_has "l.runs.some((r)=>r.runId==='$run'&&r.jail>0&&r.cpuMs>=0)"
ok 'and the jail of a command' wait_for 10 ps_has "l.runs.some((r)=>r.status==='command'&&r.jail>0)"
like 'as a table' "$(abctl ps)" 'CPU +MEMORY +PIDS'
kill $jail
wait $jail 2>/dev/null
ok 'which leaves it again' wait_for 10 ps_has "!l.runs.some((r)=>r.status==='command')"
abctl cancel "$run" >/dev/null
wait_for 20 has_status "$run" cancelled
ok 'as does that of the run' wait_for 10 ps_has "l.runs.length===0"

# A PID 1 that takes no request: the command is told so, and not started later either.
run=$(detach slow -s u/a -p x)
wait_for 20 has_status "$run" running
ok 'a command joins the next one' wait_for 20 joined 'echo joined'
init=$(child_pid agentbox-init)
kill -STOP "$init"
timeout 60 "$BIN/abctl" --socket "$T/sock" exec "$session" -- sh -c 'echo late >late; sleep 100' >"$T/out" 2>"$T/err"
is 'one that PID 1 does not take is answered' $? 126
like 'with the reason' "$(cat "$T/err")" 'PID 1 of the jail takes no request; is the jail stopped or frozen'
kill -CONT "$init"
ok 'the jail serves on when PID 1 does' wait_for 20 joined 'echo joined'
is 'and nothing is left of what was given up' "$(abctl exec "$session" -- sh -c 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " " | grep -c "sleep 10[0]"' 2>/dev/null)" 0
abctl cancel "$run" >/dev/null
wait_for 20 has_status "$run" cancelled

# Starting at the same moment: whoever is second waits for the jail of the first.
for _ in $(seq 10); do
	abctl exec "$session" -- sleep 0.1 2>>"$T/together" &
	a=$!
	abctl exec "$session" -- sleep 0.1 2>>"$T/together"
	wait $a
done
# While a run's artifacts are collected nobody has a jail: then one makes the next, for which the others wait.
run=$(detach leaves -s u/a -p x)
held_up() { worker=$(pgrep -P "$DAEMON" -f agentbox-worker | head -n 1) && kill -STOP "$worker"; }
until_held_up() { for _ in $(seq 4000); do held_up && return; done; }
ok 'a run whose artifacts are being collected' until_held_up
them=()
for _ in 1 2 3 4; do
	abctl exec "$session" -- sleep 0.1 2>>"$T/together" &
	them+=($!)
done
sleep 1
kill -CONT "$worker"
wait "${them[@]}"
is 'commands that start together are not told to come again' "$(grep -E 'starting or ending' "$T/together")" ''

# The race: whoever is second waits; no run fails for it, no command is sent away.  One that has
# joined the run's jail ends with it.
bad=0
: >"$T/race"
for i in $(seq 15); do
	abctl run quick -s u/a -p x --json >"$T/race.$i" 2>&1 &
	a=$!
	abctl exec "$session" -- true 2>"$T/race.err" || grep -v 'the command was ended: killed' "$T/race.err" >>"$T/race"
	wait $a || bad=$((bad + 1))
done
is 'fifteen races between a run and a command' "$bad $(grep -v notice: "$T/race")" '0 '

# Short lines are gathered: the log does not cost many times what was said.
abctl run chatty -s u/c -p x --json >"$T/chatty"
like 'a million bytes of short lines' "$(json 'l.result.status' <"$T/chatty")" succeeded
ok 'in few events' test "$(wc -l <"$T/chatty")" -lt 3000
ok 'of which none is lost' test "$(json 'e.filter((x)=>x.type==="agent.message").map((x)=>x.text).join("").length' <"$T/chatty")" = 1000000
finish
