#!/usr/bin/env bash
# Attempts of a run: which ends are tried again, the pause outside of any slot, cancel and limits in it,
# and deaths of the supervisor and of agentboxd.
. tests/integration/lib.sh
. tests/integration/runs.sh

# counts its attempts in the workspace and succeeds in the third
script third 'n=$(cat n 2>/dev/null || echo 0); n=$((n+1)); echo $n >n; echo try $n; mkdir -p out; echo $n >out/$n; [ $n = 3 ]' \
	'artifacts: [out/*]' 'retry: { maxAttempts: 5, backoffMs: 20 }'
script fails 'echo try; exit 3' 'retry: { maxAttempts: 2 }'
script hangs 'echo try; sleep 1000' 'limits: { timeoutMs: 300 }' 'retry: { maxAttempts: 2, on: [timeout] }'
script once 'echo try; exit 3' 'retry: { maxAttempts: 5, on: [timeout] }'
script pauses 'test -e n && exec echo again; touch n; exit 3' 'retry: { maxAttempts: 2, backoffMs: 600000 }'
script short 'test -e n && exec echo again; touch n; exit 3' 'retry: { maxAttempts: 2, backoffMs: 8000 }'
script total 'echo try; sleep 1000' 'limits: { timeoutMs: 400, totalMs: 1000 }' 'retry: { maxAttempts: 9 }'
script quick 'echo done'
cat >"$T/etc/agentboxd.yaml" <<-Y
	runs: { max: 1 }
Y
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
new() { abctl run "$2" -s "u/$1" -p x --detach --json | json l.runId; }
show() { abctl show "$1" --json; }
state() { show "$1" | json 'l.result?l.result.status:l.state'; }
is_in() { [ "$(state "$1")" = "$2" ]; }
result() { show "$1" | json "l.result.$2"; }
events() { abctl logs "$1" --json | json "e.filter(x=>/^run/.test(x.type)).map(x=>x.type.slice(4)+(x.attempt||'')).join()"; }
retry() { abctl logs "$1" --json | json "e.find(x=>x.type==='run.retry').$2"; }
wait_done() { wait_for 30 ended "$1"; }

a=$(new a third)
wait_done "$a"
is 'a third attempt succeeds' "$(state "$a")" succeeded
is 'and each is told' "$(events "$a")" queued,started1,retry2,queued,started2,retry3,queued,started3,done
is 'with its reason' "$(retry "$a" status)" failed
is 'the result counts them' "$(result "$a" attempts)" 3
is 'its text is the last one'"'"'s' "$(result "$a" finalText)" 'try 3'
is 'artifacts are those of the last' "$(show "$a" | json 'l.result.artifacts.map(x=>x.path).join()')" out/1,out/2,out/3
is 'and none is kept twice' "$(ls "$T/state/supervisor/artifacts/$a" | wc -l)" 3
is 'what came before counts' "$(retry "$a" 'soFar.cpuUs<=0?"none":"some"')" some

b=$(new b fails)
c=$(new c hangs)
d=$(new d once)
for x in "$b" "$c" "$d"; do wait_done "$x"; done
is 'no more than maxAttempts' "$(state "$b") $(result "$b" attempts)" 'failed 2'
is 'a timeout of each' "$(state "$c") $(result "$c" attempts)" 'timeout 2'
is 'another end is not tried again' "$(state "$d") $(result "$d" attempts)" 'failed 1'

e=$(new e total)
wait_done "$e"
ok 'all attempts together have their time' [ "$(result "$e" durationMs)" -lt 3000 ]
like 'which is told' "$(result "$e" error)" 'not done after (1000 ms in all|400 ms)'

# the pause: one slot in all, and another session has it
p=$(new p pauses)
q=$(new p quick)
wait_for 20 is_in "$p" paused
r=$(new r quick)
wait_done "$r"
is 'its slot is for others' "$(state "$r"),$(state "$p")" succeeded,paused
is 'its session is its own' "$(state "$q")" queued
ok 'the pause is told' [ "$(retry "$p" delayMs)" -ge 300000 ]
like 'a command may look into it' "$(abctl exec u/p -- ls)" '^n$'
abctl cancel "$p" >/dev/null
wait_done "$q"
is 'a cancel ends it at once, and the next one runs' "$(state "$p") $(result "$p" attempts) $(state "$q")" 'cancelled 1 succeeded'

s=$(new s pauses)
t=$(new s quick)
wait_for 20 is_in "$s" paused
kill_child agentbox-supervisor
is 'the supervisor dies: it waits on' "$(state "$s"),$(state "$t")" paused,queued
u=$(new u quick)
wait_done "$u"
is 'without a slot' "$(state "$u")" succeeded
v=$(new v short)
wait_for 20 is_in "$v" paused
stop_daemon KILL
start_daemon --config "$T/etc/agentboxd.yaml"
is 'agentboxd dies: likewise' "$(state "$s"),$(state "$t")" paused,queued
wait_done "$v"
is 'then the next attempt comes' "$(state "$v") $(result "$v" attempts) $(result "$v" finalText)" 'succeeded 2 again'
is 'told once' "$(abctl logs "$v" --json | json 'e.filter(x=>x.type==="run.retry"||x.type==="run.done").length')" 2
abctl cancel "$s" >/dev/null
wait_done "$t"
is 'and after a cancel the next run of its session' "$(state "$s") $(state "$t")" 'cancelled succeeded'
is 'every session is numbered without a gap' "$(cat "$T"/state/supervisor/events/*.jsonl |
	json 'e.every((x,i)=>x.seq===(i&&e[i-1].session===x.session?e[i-1].seq+1:1))')" true
finish
