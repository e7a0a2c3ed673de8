#!/usr/bin/env bash
# A run, its events, its artifact, its history; two runs of one session.
. tests/integration/lib.sh

start_daemon || { echo "not ok 1 - start"; echo 1..1; exit 1; }

abctl run hello -s u/g -p 'first prompt' --json >"$T/one" 2>"$T/err"
is 'the run succeeds' $? 0
like 'the first line says queued or started' "$(head -n 1 "$T/one")" '"type":"run\.(queued|started)"'
is 'the last line is run.done' "$(json 'l.type' <"$T/one")" run.done
is 'with status succeeded' "$(json 'l.result.status' <"$T/one")" succeeded
is 'every line has seq, ts, session, run, type' "$(json 'e.every(x=>x.seq&&x.ts&&x.session&&x.run&&x.type)' <"$T/one")" true
like 'the prompt reached the agent by stdin' "$(cat "$T/one")" 'first prompt'
is 'the artifact is listed' "$(json 'l.result.artifacts.map(a=>a.path).join()' <"$T/one")" out/hello.txt
ok 'layers are in the record' test "$(json 'l.result.layers.length' <"$T/one")" -gt 15
like 'a resource figure' "$(json 'l.result.resources.cpuMs' <"$T/one")" '^[0-9]+(\.[0-9]+)?$'

run=$(json 'l.run' <"$T/one")
session=$(json 'l.session' <"$T/one")
abctl artifacts "$run" get out/hello.txt >"$T/art" 2>"$T/err"
is 'the artifact comes back' $? 0
is 'its digest is the one in the result' "$(sha256sum <"$T/art" | cut -d' ' -f1)" "$(json 'l.result.artifacts[0].sha256' <"$T/one")"

abctl run hello -s u/g -p second --json >"$T/two"
is 'a second run of the session' "$(json 'l.result.status' <"$T/two")" succeeded
is 'is in the same session' "$(json 'l.session' <"$T/two")" "$session"
curl -sS --unix-socket "$T/sock" "http://x/v1/sessions/$session/events" -H 'Accept: application/x-ndjson' >"$T/all"
is 'seq is gapless from 1 over both' "$(json 'e.every((x,i)=>x.seq===i+1)' <"$T/all")" true
is 'and holds both runs' "$(json 'new Set(e.map(x=>x.run)).size' <"$T/all")" 2
abctl logs "$run" --json >"$T/logs"
ok 'logs of a finished run are its events' cmp "$T/logs" "$T/one"
like 'runs lists it' "$(abctl runs --json)" "$run"
is 'show gives the result' "$(abctl show "$run" --json | json 'l.status||l.result.status')" succeeded
like 'sessions lists it' "$(abctl sessions --json)" "$session"

# reattach by Last-Event-ID
after=$(json 'e[1].seq' <"$T/one")
curl -sS --unix-socket "$T/sock" "http://x/v1/runs/$run/events?follow=1" -H 'Accept: text/event-stream' \
	-H "Last-Event-ID: $after" >"$T/sse"
is 'a stream resumed by Last-Event-ID goes on after it' "$(grep -m1 '^id:' "$T/sse" | tr -dc 0-9)" $((after + 1))
like 'and ends with run.done' "$(grep '^event:' "$T/sse" | tail -n 1)" 'run\.done'

# async and idempotent
body='{"session":{"userId":"u","goalId":"async"},"harness":"hello","prompt":"x","idempotencyKey":"k1"}'
a=$(curl -sS --unix-socket "$T/sock" http://x/v1/runs -d "$body")
b=$(curl -sS --unix-socket "$T/sock" http://x/v1/runs -d "$body")
like '202 names the run' "$a" '"runId":"run_'
is 'the same idempotency key gives the same run' "$(json 'l.runId' <<<"$a")" "$(json 'l.runId' <<<"$b")"
is 'wait=1 holds until the result' \
	"$(curl -sS --unix-socket "$T/sock" 'http://x/v1/runs?wait=1' -d '{"session":{"userId":"u","goalId":"w"},"harness":"hello","prompt":"x"}' | json 'l.status||l.result.status')" succeeded

# workspace and history survive a restart
ok 'a graceful stop' stop_daemon TERM
start_daemon
like 'history survives' "$(abctl runs --json)" "$run"
abctl run hello -s u/g -p third --json >"$T/three"
is 'the session goes on after its numbers' "$(json 'e[0].seq' <"$T/three")" $(($(json 'l.seq' <"$T/two") + 1))

abctl session rm "$session" >/dev/null
is 'a session can be removed' $? 0
ok 'its workspace is gone' test ! -e "$T/state/sessions/$session"
finish
