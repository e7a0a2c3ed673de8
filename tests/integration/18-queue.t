#!/usr/bin/env bash
# Runs that wait: places, parts of users and tenants, time that is over, memory that is promised; and
# the same after a death of the supervisor.
. tests/integration/lib.sh
. tests/integration/runs.sh

script slow 'echo on; sleep 1000'
script small 'echo on; sleep 1000' 'limits: { memory: 1G }'
script brief 'echo never' 'limits: { queueMs: 300, memory: 1G }'
script later 'echo never' 'limits: { queueMs: 3000, memory: 1G }'
mkdir -p "$T/etc/policy"
printf 'limits: { memory: 64G }\n' >"$T/etc/policy/giant.yaml"
harness never 'backend: exec' 'command: [true]' 'policy: giant'
cat >"$T/etc/agentboxd.yaml" <<-Y
	runs:
	  max: 3
	  per_user: 2
	  per_user_queue: 2
	  memory: 5G
	  shares:
	    - { user: u9, weight: 2, max: 1, queue: 1 }
Y
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
api() { curl -s --max-time 60 --unix-socket "$T/sock" "$@"; }
body() { printf '{"session":{"userId":"%s","goalId":"%s"},"harness":"%s","prompt":"x"}' "$1" "$2" "$3"; }
post() { api -X POST http://x/v1/runs -d "$(body "$@")"; }
new() { post "$@" | json l.runId; }
show() { api "http://x/v1/runs/$1"; }
state() { show "$1" | json 'l.result?l.result.status:l.state'; }
is_in() { [ "$(state "$1")" = "$2" ]; }
place() { show "$1" | json l.position; }
why() { show "$1" | json 'l.result.exit.reason+": "+l.result.error'; }
cancel() { api -X DELETE "http://x/v1/runs/$1?now=1" >/dev/null; }

a=$(new u1 a small)
b=$(new u1 a small)
c=$(new u1 c small)
wait_for 20 is_in "$c" running
is 'two of a user run, one waits for its session' "$(state "$b")" queued
d=$(new u1 d small)
is 'and another for the user'"'"'s part' "$(place "$b"),$(place "$d")" 0,1
api -i -X POST http://x/v1/runs -d "$(body u1 e small)" >"$T/full"
like 'a third has no place' "$(cat "$T/full")" "too many runs of user 'u1' wait \(limit 2\)"
like 'which may come again' "$(tr -d '\r' <"$T/full")" '^Retry-After: [0-9]+$'
like 'it is 429' "$(head -n 1 "$T/full")" ' 429 '
e=$(new u9 a small)
wait_for 20 is_in "$e" running
is 'another user runs at once' "$(state "$e")" running
f=$(new u9 b small)
is 'a share of its own: no second one' "$(state "$f")" queued
like 'and one that waits' "$(post u9 c small)" "'u9' wait \(limit 1\)"
cancel "$d"
ok 'one that waits ends when it is cancelled, though no slot is free' wait_for 20 is_in "$d" cancelled
like 'what never fits is refused' "$(post u2 a never)" '"status":422.*never.*65536 MiB.*runs.memory'

g=$(new u1 a brief)
wait_for 20 is_in "$g" timeout
like 'who has waited too long for its session is told so' "$(why "$g")" '^queue: it has waited [0-9]+ ms .*limits.queueMs'
is 'in its events, too' "$(api "http://x/v1/runs/$g/events" | json 'e.map(x=>x.type+(x.limit||"")).join()')" run.queued,limit.hitqueue,run.done

# in 5G: three of 1G run, 4G do not fit
big=$(new u3 a slow)
cancel "$e"
wait_for 20 is_in "$f" running
is 'a large one waits for memory' "$(state "$big")" queued
cancel "$a"
wait_for 20 is_in "$b" running
is 'others run beside it, as far as they are not in its way' "$(state "$b"),$(state "$big")" running,queued
cancel "$c"
wait_for 20 is_in "$c" cancelled
j=$(new u4 a small)
is 'what comes free then is kept for it' "$(state "$j"),$(state "$big")" queued,queued
cancel "$f"
wait_for 20 is_in "$big" running
is 'until it runs' "$(state "$j"),$(state "$big")" queued,running

h=$(new u1 a later)
kill_child agentbox-supervisor
is 'after a death they wait on' "$(state "$j"),$(state "$big")" queued,running
is 'in order' "$(place "$j"),$(place "$h")" 0,1
wait_for 20 is_in "$h" timeout
ms=$(show "$h" | json 'l.result.queuedMs')
ok "and the time goes on ($ms ms)" [ "$ms" -ge 3000 ]
cancel "$big"
wait_for 20 is_in "$j" running
is 'who waited runs' "$(state "$j")" running

printf 'runs: { max: 3, queue_timeout: 100ms }\n' >"$T/etc/agentboxd.yaml"
abctl reload >/dev/null
i=$(new u4 a small)
wait_for 20 is_in "$i" timeout
like "root's limit holds for those without one" "$(why "$i")" '^queue: .*runs.queue_timeout'
finish
