#!/usr/bin/env bash
# Seeds, harness files that change, queues, many at once, deletion.
. tests/integration/lib.sh

mkdir -p "$T/etc/harnesses"
harness() { printf -- '---\nbackend: exec\n%s\n---\n' "$2" >"$T/etc/harnesses/$1.md"; }
harness seeded "command: [sh, -c, 'cat a/seed.txt; echo changed >a/seed.txt']
workspace: { seed: { 'a/seed.txt': fresh } }"
harness slow "command: [sh, -c, 'echo on; sleep 1000']"
harness params "command: [cat]"
harness exposed "command: [env]
env: [AB_SHOWN, AB_UNSET]"
harness hidden "command: [env]
env: [AB_HIDDEN]"
printf 'runs: { max: 4 }\nexpose_env: [AB_SHOWN, AB_UNSET]\n' >"$T/etc/agentboxd.yaml"
export AB_SHOWN='shown to it' AB_HIDDEN='shown to nobody'
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
api() { curl -s --max-time 60 --unix-socket "$T/sock" "$@"; }
post() { api -X POST "http://x/v1/runs$1" -d "$2"; }
body() { printf '{"session":{"userId":"%s","goalId":"%s"},"harness":"%s","prompt":"%s"}' "$1" "$2" "$3" "${4:-hi}"; }
field() { json "l.$1"; }

is 'a seed file is there' "$(post '?wait=1' "$(body u seed seeded)" | field finalText)" fresh
is 'and is never written again' "$(post '?wait=1' "$(body u seed seeded)" | field finalText)" changed

printf -- '---\nbackend: exec\ncommand: [sh, -c, "echo one"]\n---\n' >"$T/etc/harnesses/hot.md"
hot() { [ "$(post '?wait=1' "$(body u hot hot)" | field finalText)" = "$1" ]; }
ok 'a new harness file is taken up at once' hot one
printf -- '---\nbackend: exec\ncommand: [sh, -c, "echo two"]\n---\n' >"$T/etc/harnesses/hot.md"
ok 'a changed one too' hot two
printf -- '---\nbackend: exec\ncomand: [x]\n---\n' >"$T/etc/harnesses/hot.md"
broken() { api http://x/v1/harnesses/hot | grep -q comand; }
ok 'a broken save is told' broken
ok 'and the version before it stays' hot two
rm "$T/etc/harnesses/hot.md"
ok 'a removed one is gone' not hot two

is 'parameters are filled in' "$(api -X POST 'http://x/v1/runs?wait=1' -d '{"session":{"userId":"u","goalId":"p"},"harness":"params","prompt":"a {{x}} {{y}} b","params":{"x":"1{{y}}"}}' | field finalText)" 'a 1{{y}} {{y}} b'
like 'a variable that root exposes and the harness names' "$(post '?wait=1' "$(body u e exposed)" | field finalText)" '^AB_SHOWN=shown to it$'
ok 'only such a harness sees it' not grep -q AB_SHOWN <(post '?wait=1' "$(body u e params)"; abctl jail -- env)
like 'one that root does not expose is refused' "$(post '' "$(body u e hidden)")" "\"status\":422.*AB_HIDDEN.*expose_env"
key=$(body u k hello)
key="${key%\}},\"idempotencyKey\":\"k1\"}"
first=$(post '?wait=1' "$key" | field runId)
is 'a key gives the earlier run' "$(post '' "$key" | field runId)" "$first"
like 'but not for another request' "$(post '' "${key/\"hi\"/\"other\"}")" '"status":409'
for i in 1 2 3 4; do { post "" "${key/k1/k2}"; echo; } >"$T/same.$i" & done
# shellcheck disable=SC2046 # a list of pids
wait $(jobs -p | grep -v "^$DAEMON$")
is 'four at once with one key are one run' "$(cat "$T"/same.* | json 'new Set(e.map(x=>x.runId)).size')" 1

start=$(date +%s%N)
for i in $(seq 60); do { post "?wait=1" "$(body "u$((i % 7))" "g$((i % 20))" hello)"; echo; } >"$T/many.$i" & done
# shellcheck disable=SC2046 # a list of pids
wait $(jobs -p | grep -v "^$DAEMON$")
ms=$((($(date +%s%N) - start) / 1000000))
is "60 runs of 7 users in 20 sessions (${ms} ms)" "$(cat "$T"/many.* | json 'e.filter(x=>x.status==="succeeded").length')" 60
# all their logs, one after another
is 'every session is numbered without a gap' "$(cat "$T"/state/supervisor/events/*.jsonl |
	json 'e.every((x,i)=>x.seq===(i&&e[i-1].session===x.session?e[i-1].seq+1:1))')" true

for i in 1 2 3 4 5 6; do post '' "$(body "s$i" s slow)" | field runId >"$T/slow.$i"; done
status() { api "http://x/v1/runs/$(cat "$T/slow.$1")" | field status; }
running() { [ "$(status 4)" = running ]; }
ok 'four run' wait_for 5 running
is 'the fifth waits' "$(status 5)" queued
super=$(child_pid agentbox-supervisor)
kill -9 "$super"
other() { local now; now=$(child_pid agentbox-supervisor) && [ "$now" ] && [ "$now" != "$super" ]; }
ok 'the supervisor comes back' wait_for 5 other
ok 'and answers' wait_for 5 api http://x/healthz
is 'after its death what ran goes on' "$(status 1) $(status 2) $(status 3) $(status 4)" 'running running running running'
is 'and what waited waits' "$(status 5)" queued
for i in 1 2; do api -X DELETE "http://x/v1/runs/$(cat "$T/slow.$i")" >/dev/null; done
again() { [ "$(status 5)" = running ] && [ "$(status 1)" = cancelled ]; }
ok 'until there is room' wait_for 20 again
id=$(api "http://x/v1/runs/$(cat "$T/slow.5")" | field sessionId)
like 'a session with a run is not deleted' "$(api -X DELETE "http://x/v1/sessions/$id")" '"status":409'
for i in 5 6; do api -X DELETE "http://x/v1/runs/$(cat "$T/slow.$i")" >/dev/null; done
ended() { [ "$(status 5)" = cancelled ] && [ "$(status 6)" = cancelled ]; }
ok 'they are cancelled' wait_for 10 ended
api -X DELETE "http://x/v1/sessions/$id" >/dev/null
like 'then it is deleted' "$(api "http://x/v1/sessions/$id")" '"status":404'
ok 'with its events' test ! -e "$T/state/supervisor/events/$id.jsonl"
ok 'and its runs' sh -c "curl -s --unix-socket '$T/sock' 'http://x/v1/runs/$(cat "$T/slow.5")' | grep -q 404"

# Whoever asks all the while: a run that has ended has its result, and who follows it then its end.
early=$(PYTHONPATH=tests/integration python3 - "$T/sock" <<'PY'
import json
from soak import call
for n in range(25):
    run = json.loads(call("POST", "/v1/runs", {"session": {"userId": "early", "goalId": "g"}, "harness": "hello", "prompt": "x"})[1])["runId"]
    told = {"status": "queued"}
    while told["status"] in ("queued", "running"):
        told = json.loads(call("GET", "/v1/runs/" + run)[1])
    if "result" not in told or "state" in told:
        print(told)
    if "run.done" not in call("GET", f"/v1/runs/{run}/events?follow=1")[1]:
        print(run, "has no run.done")
PY
)
is 'no end is told before its result, nor without its event' "$early" ''

ok 'the daemon stops' stop_daemon TERM
start_daemon --config "$T/etc/agentboxd.yaml"
is 'runs are still there' "$(api "http://x/v1/runs/$first" | field status)" succeeded
finish
