#!/usr/bin/env bash
# Agents that stay for the next run of their session.
. tests/integration/lib.sh

. tests/integration/parrot.sh
. tests/integration/warm.sh

harness warm 'warm: { idleMs: 60000 }
artifacts: [out/**]'
harness short 'warm: { idleMs: 1500 }'
harness small 'warm: { idleMs: 60000, memory: 1M }'
harness other 'warm: { idleMs: 60000 }' 'Be brief.'
printf -- '---\nbackend: exec\npolicy: demo\ncommand: [cat]\nwarm: { idleMs: 60000 }\n---\n' >"$T/etc/harnesses/cat.md"
begin 'runs: { max: 4, warm: 3 }'

pid_of() { result | sed 's/.*pid:\([0-9]*\).*/\1/'; }

run warm a 'write:one say:hello pid'
is 'the first run is cold' "$(result | sed 's/pid:.*//')$(was_warm)" 'succeeded|hello false'
first=$(pid_of)
is 'and its agent stays' "$(events 'l.result.exit.reason+l.result.artifacts.map(a=>a.path).join()')" keptout/x
ok 'which is told' waiting 1
run warm a 'say:again pid'
is 'the next run of the session is warm' "$(was_warm)" true
is 'the very same process' "$(pid_of)" "$first"
like 'in the same conversation' "$(result)" '^succeeded\|after:write:one,say:hello,pid, again'
is 'its journal and its events are its own' "$(events 'e.filter(x=>x.type==="file.changed").length+","+e[0].type')" '0,run.queued'
run warm b 'pid'
is 'another session has an agent of its own' "$(was_warm)" false
ok 'and another process' test "$(pid_of)" != "$first"
is 'hits and misses are counted' "$(stat warmHits),$(stat warmMisses)" 1,2
like 'and are metrics' "$(abctl stats --prometheus 2>/dev/null || curl -s --unix-socket "$T/sock" http://x/metrics)" 'agentbox_warm_hits_total 1'

run other a 'pid'
is 'another harness gets a new agent' "$(was_warm),$(result | cut -d '|' -f 1)" false,succeeded
run other a 'say:x'
is 'and then that one' "$(was_warm)" true
harness other 'warm: { idleMs: 60000 }' 'Be very brief.'
run other a 'say:x'
is 'a harness that has changed as well' "$(was_warm),$(result | cut -d '|' -f 1)" false,succeeded
run other a 'say:x'
is 'which stays, too' "$(was_warm)" true
cp -r "$T/agents/parrot" "$T/agents/.new" && mv "$T/agents/parrot" "$T/agents/.old" && mv "$T/agents/.new" "$T/agents/parrot"
run other a 'say:x'
is 'another installation of the agent gets a new one' "$(was_warm),$(result | cut -d '|' -f 1)" false,succeeded
ok 'a command in the session does not wait for it' timeout 20 "$BIN/abctl" --socket "$T/sock" exec u/a -- true
run other a 'say:x'
is 'which ends it' "$(was_warm),$(result | cut -d '|' -f 1)" false,succeeded

run short c 'say:x'
ok 'one whose time is over' wait_for 20 grep -q 'warm.idleMs is over' "$T/log"
run short c 'say:x'
is 'is gone' "$(was_warm),$(result | cut -d '|' -f 1)" false,succeeded
run small d 'say:x'
like 'one that holds too much does not stay' "$(result)$(events l.result.exit.reason)" '^succeeded.*exit$'
ok 'for that reason' grep -q 'holds more than warm.memory' "$T/log"
run warm e 'later:say say:x'
ok 'one that says something meanwhile' wait_for 20 grep -q 'said something while it waited' "$T/log"
run warm e 'say:y'
is 'is not used' "$(was_warm),$(result)" 'false,succeeded|after:later:say,say:x, y|'
run warm f 'later:exit say:x'
ok 'nor one that exits' wait_for 20 grep -q "s=$(events 'e[0].session'): the agent of" "$T/log"
run warm f 'say:y'
is 'of which nothing is lost' "$(was_warm),$(result)" 'false,succeeded|after:later:exit,say:x, y|'
run warm g 'fail'
is 'a run that failed leaves none' "$(result | cut -d '|' -f 1),$(events l.result.exit.reason)" failed,exit
"$BIN/abctl" --socket "$T/sock" run warm -s u/h -p 'say:on hang' --json >"$T/out" 2>"$T/err" &
child=$!
ok 'one that works' wait_for 20 grep -q '"text":"on ' "$T/out"
"$BIN/abctl" --socket "$T/sock" cancel "$(events 'e[0].run')" >/dev/null
wait "$child"
is 'and is cancelled leaves none' "$(events '[l.result.status,l.result.exit.reason].join()')" cancelled,cancelled

for s in i j k l; do run warm $s 'say:x'; done
ok 'no more than runs.warm wait' test "$(stat agentsWaiting)" -le 3
run warm l 'say:x'
is 'who waited least is still there' "$(was_warm)" true
run warm i 'say:x'
is 'who waited longest is not' "$(was_warm)" false
ok 'a session is deleted though its agent waits' abctl session rm u/i
ok 'and the agent with it' wait_for 20 grep -q 'session is wanted for something else' "$T/log"

like 'an agent that does not wait is refused' "$(abctl run cat -s u/n -p x 2>&1)" "warm: agent '.*' cannot do that \(warm\)"

# ---- reloads, deaths ----
run warm p 'say:x'
ok 'root reads its policies again' abctl reload
ok 'then none waits' wait_for 20 waiting 0
ok 'nor lives' wait_for 20 no_jail_processes
run warm p 'say:x'
id=$(abctl run warm -s u/p -p 'say:on hang' --detach --json | json 'l.runId')
ok 'a warm run is under way' wait_for 20 sh -c "'$BIN/abctl' --socket '$T/sock' logs $id --json | grep -q '\"text\":\"on '"
run2=$(abctl run warm -s u/q -p 'say:x' --json | json 'l.result.status')
is 'another agent waits' "$run2" succeeded
kill -9 "$(child_pid agentbox-supervisor)"
ok 'the next supervisor has it' wait_for 30 abctl show "$id"
ok 'one that waited is gone' wait_for 20 live_parrots 1
abctl cancel "$id" >/dev/null
ok 'the run goes on to its end' wait_for 20 sh -c "'$BIN/abctl' --socket '$T/sock' show $id --json | grep -q '\"cancelled\"'"
abctl logs "$id" --json >"$T/out" 2>/dev/null
is 'and was that of the agent that waited' "$(events 'e.find(x=>x.type==="run.started").warm')" true
ok 'nothing is left' wait_for 20 no_jail_processes
run warm r 'say:x'
kill -9 "$(child_pid agentbox-supervisor)"
ok 'and one that waits does not outlive its supervisor' wait_for 20 no_jail_processes
run warm r 'say:y'
is 'its session goes on' "$(result)" 'succeeded|after:say:x, y|'
# killed at any moment of a warm run: it is done once, and nothing of it is lost or left
said() { abctl logs "$1" --json | json 'e.filter(x=>x.type==="agent.message").map(x=>x.text.trim()).join()'; }
ended() { test "$(abctl show "$1" --json | json 'l.status')" = succeeded; }
bad=0 kills=0
run warm s 'say:0'
for i in $(seq 12); do
	id=$(abctl run warm -s u/s -p "say:$i write:$i" --detach --json | json 'l.runId')
	sleep "0.$(printf %03d $((RANDOM % 90)))"
	kill -9 "$(child_pid agentbox-supervisor)" && kills=$((kills + 1))
	wait_for 30 ended "$id" || { bad=$((bad + 1)); abctl show "$id" --json | sed 's/^/# /'; }
	case $(said "$id") in *",$i") ;; *) bad=$((bad + 1)); said "$id" | sed 's/^/# said: /' ;; esac
done
is "supervisors killed in twelve warm runs ($kills)" $bad 0
stop_daemon TERM
ok 'the daemon leaves none' wait_for 20 no_jail_processes
finish
