#!/usr/bin/env bash
# What of the past is not kept: it goes, what is kept stays whole, and readers are told of the difference.
. tests/integration/lib.sh
. tests/integration/runs.sh

script waits 'echo on; while ! test -e go; do sleep 0.1; done; rm go; mkdir -p out; echo x >out/x' 'artifacts: [out/**]'
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
req() { curl -sS -m 20 --unix-socket "$T/sock" "$@"; }
code() { req -o /dev/null -w '%{http_code}' "$@"; }
keep() { # YAML: takes effect
	printf 'retention: {%s}\n' "$1" >"$T/etc/agentboxd.yaml"
	abctl reload >/dev/null
}
one() { # GOAL KEY: a run with an artifact, its id
	req -d '{"session":{"userId":"u","goalId":"'"$1"'"},"harness":"hello","prompt":"x","idempotencyKey":"'"$2"'"}' \
		'http://x/v1/runs?wait=1' | json 'l.runId'
}
is_not_there() { [ "$(code "http://x/v1/runs/$1")" = 404 ]; }
artifact_gone() { [ "$(code "http://x/v1/runs/$1/artifacts/out/hello.txt")" = 404 ]; }
events() { req "http://x/v1/sessions/$1/events?${2:-}"; }
first() { events "$1" | head -n 1 | json 'l.type'; }
cut() { [ "$(first "$1")" = log.gap ]; }

a1=$(one a k1)
a2=$(one a k2)
a3=$(one a k3)
ses=$(abctl show "$a1" --json | json 'l.sessionId')
b1=$(one b k4)
begin waits b
b2=$id
b=$(json 'l.sessionId' <"$T/b.run")
last=$(events "$ses" | json 'l.seq')
like 'without a word everything is kept' "$(events "$ses" | json 'e[0].seq+" "+e.filter(x=>x.type==="run.done").length')" '^1 3$'

c1=$(one c k5)
abctl session pin u/c >/dev/null
keep 'artifacts: 1ms'
ok 'artifacts go' wait_for 20 artifact_gone "$a3"
ok 'of all old runs' artifact_gone "$a1"
is 'and are not listed' "$(req "http://x/v1/runs/$a1/artifacts" | json 'l.artifacts.length')" 0
is 'the record stays' "$(abctl show "$a1" --json | json 'l.result.status')" succeeded
is 'nothing goes of a session that is in use' "$(code "http://x/v1/runs/$b1/artifacts/out/hello.txt")" 200
is 'nor of one that is pinned' "$(code "http://x/v1/runs/$c1/artifacts/out/hello.txt")" 200
abctl session unpin u/c >/dev/null
ok 'until it is not' wait_for 20 artifact_gone "$c1"
abctl session rm u/c >/dev/null
size=$(stat -c %b "$T/state/supervisor/events/$ses.jsonl")

keep 'events: 1ms, artifacts: 1ms'
ok 'events go' wait_for 20 cut "$ses"
is 'which a reader is told of' "$(events "$ses" | json '[e[0].from,e[0].to,e[0].reason,e[1].seq,l.seq,l.type].join()')" \
	"1,$((last - 1)),retention,$last,$last,run.done"
is 'from where it asked' "$(events "$ses" from=3 | json '[e[0].from,e[0].to].join()')" "3,$((last - 1))"
is 'not one that has all that is there' "$(events "$ses" "from=$last" | json 'e.length+l.type')" 1run.done
like 'as an event of a stream, with its number' "$(req -H 'Accept: text/event-stream' "http://x/v1/sessions/$ses/events" | head -n 2 | tr '\n' ' ')" \
	"^id: $((last - 1)) event: log.gap"
is 'a run without events left ends at once' "$(req "http://x/v1/runs/$a1/events?follow=1" | json 'l.type')" log.gap
is 'asked for again it has its result' "$(one a k1)" "$a1"
is 'another reader of a session in use reads all' "$(first "$b")" run.queued
if [ "$size" -gt 16 ]; then
	ok 'the room is given back' test "$(stat -c %b "$T/state/supervisor/events/$ses.jsonl")" -lt "$size"
fi
keep ''
a4=$(one a k5)
is 'numbers go on' "$(req "http://x/v1/runs/$a4/events?from=$((last + 1))" | json 'e.every((x,i)=>x.seq===e[0].seq+i)&&e[0].seq')" $((last + 1))

keep 'runs: 1ms'
ok 'runs go' wait_for 20 is_not_there "$a1"
ok 'all of them' wait_for 20 is_not_there "$a4"
is 'but those of a session in use' "$(code "http://x/v1/runs/$b1")" 200
is 'nothing of it' "$(first "$b")" run.queued
is 'the session stays' "$(code "http://x/v1/sessions/$ses")" 200
test ! -e "$T/state/supervisor/artifacts/$a1" -a ! -e "$T/state/supervisor/journals/$a1"
is 'nothing of it is left on the disk' $? 0
a5=$(one a k1)
isnt() { [ "$1" != "$2" ]; }
ok 'its idempotency key is free' isnt "$a5" "$a1"
abctl exec "$b" -- touch go
ok 'what was in use goes once it is not' wait_for 20 is_not_there "$b2"
ok 'and what was before it' wait_for 20 is_not_there "$b1"

# killed in the middle, and the newest stay
keep ''
begin_time=$(date -u +%Y-%m-%dT%H:%M:%S.%3NZ)
for i in $(seq 15); do one "c$((i % 3))" "c$i" >>"$T/c"; done
# history: pages while runs come, and spans of time
page() { req "http://x/v1/runs?limit=4&${1:-}"; }
page >"$T/page"
cursor=$(json 'l.cursor' <"$T/page")
one c0 new >"$T/newest"
pages=$(json 'l.runs.map(x=>x.runId).join("\n")' <"$T/page")
while [ -n "$cursor" ] && [ "$cursor" != undefined ]; do
	page "cursor=$cursor" >"$T/page"
	pages+=$'\n'$(json 'l.runs.map(x=>x.runId).join("\n")' <"$T/page")
	cursor=$(json 'l.cursor||""' <"$T/page")
done
is 'pages are what they were when the first was read' "$(grep -Fxf "$T/c" <<<"$pages")" "$(tac "$T/c")"
is 'and have no run that came later' "$(grep -cFxf "$T/newest" <<<"$pages")" 0
middle=$(req "http://x/v1/runs/$(sed -n 8p "$T/c")" | json 'l.createdAt')
span() { abctl runs -n 100 --json "$@" | json 'l.runs.map(x=>x.runId).reverse().join("\n")'; }
cat "$T/newest" >>"$T/c"
is 'since' "$(span --since "$begin_time")" "$(cat "$T/c")"
is 'until' "$(span --since "$begin_time" --until "$middle" | wc -l)$(span --since "$middle" | wc -l)" 79
is 'so long ago' "$(span --since 1h)" "$(span)"
is 'tomorrow' "$(abctl runs --json --since 9999-01-01 | json 'l.runs.length')" 0
is 'no time' "$(code 'http://x/v1/runs?since=yesterday')" 400
keep 'runs_max: 6'
kill_child agentbox-supervisor
left() { abctl runs -n 1000 --json | json 'l.runs.length'; }
six() { [ "$(left)" = 6 ]; }
ok 'runs_max keeps so many' wait_for 20 six
is 'the newest' "$(abctl runs --json | json 'l.runs.map(x=>x.runId).reverse().join("\n")')" "$(tail -n 6 "$T/c")"
is 'with all of it' "$(for run in $(tail -n 6 "$T/c"); do code "http://x/v1/runs/$run/artifacts/out/hello.txt"; done)" 200200200200200200
is 'and their events' "$(for run in $(tail -n 6 "$T/c"); do req "http://x/v1/runs/$run/events" | json 'l.type'; done | sort | uniq -c | xargs)" '6 run.done'
is 'no artifacts of others' "$(find "$T/state/supervisor/artifacts" -mindepth 1 -maxdepth 1 | wc -l)" 6
like 'counted' "$(req http://x/metrics)" '^agentbox_retention_runs_total [0-9]+'
finish
