#!/usr/bin/env bash
# A disk without room: new runs are refused, those that run are told and wait, nothing that was accepted
# is lost, and all goes on when there is room again.
# In a mount namespace of the test's own: the supervisor's part of the state is a small file system.
if [ "${1:-}" != inside ] && [ "$(id -u)" = 0 ]; then
	exec unshare --mount --propagation private -- bash "$0" inside
fi
. tests/integration/lib.sh

mkdir -p "$T/state/supervisor" "$T/harnesses"
mount -t tmpfs -o size=24m,mode=0700 none "$T/state/supervisor" || skip_all 'no tmpfs'
trap '[ -z "$DAEMON" ] || stop_daemon KILL; umount -l "$T/state/supervisor"; _at_exit' EXIT
printf 'harness_dirs: [%s]\n' "$T/harnesses" >"$T/agentboxd.yaml"
LINES=40000
cat >"$T/harnesses/fill.md" <<MD
---
name: fill
description: ends when it is told to
backend: exec
command:
  - sh
  - -c
  - |
    touch started
    while ! test -e go; do sleep 0.1; done
    rm go
    prompt=\$(cat)
    touch printing
    [ "\$prompt" != flood ] || seq $LINES
    mkdir -p out
    echo small >out/a
    head -c 30000000 /dev/zero >out/b
    echo small >out/c
    echo over
artifacts: [out/**]
---
MD
start_daemon --config "$T/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
req() { curl -sS -m 20 --unix-socket "$T/sock" "$@"; }
health() { req http://x/healthz | json 'l.status'; }
healthy() { [ "$(health)" = "$1" ]; }
status() { abctl show "$1" --json | json 'l.status'; }
has_status() { [ "$(status "$1")" = "$2" ]; }
begin() { # PROMPT: $run waits for `go`
	run=$(abctl run fill -s u/full -p "$1" --detach --json | json 'l.runId')
	session=$(abctl show "$run" --json | json 'l.sessionId')
	wait_for 20 abctl exec "$session" -- test -e started
}
go() { abctl exec "$session" -- sh -c 'rm -f started printing; touch go'; }
full() { head -c 100000000 /dev/zero >"$T/state/supervisor/ballast" 2>/dev/null || :; }
nearly_full() { # a MiB is left: less than the reserve, a sixteenth of 24 MiB
	head -c $(($(stat -f -c '%f * %S' "$T/state/supervisor") - (1 << 20))) /dev/zero >"$T/state/supervisor/ballast"
}
room() { rm "$T/state/supervisor/ballast"; }
told() { abctl logs "$run" --json | grep -q '"type":"limit.hit".*"limit":"state"'; }
new_run() {
	req -o "$T/refused" -w '%{http_code} %header{retry-after}' \
		-d '{"session":{"userId":"u","goalId":"new"},"harness":"hello","prompt":"x"}' http://x/v1/runs
}

is 'healthy' "$(health)" ok
# less than the reserve
ok 'a run works' begin x
next=$(abctl run fill -s u/full -p x --detach --json | json 'l.runId')
nearly_full
like 'nearly full: no new run, and when to come again' "$(new_run)" '^507 [0-9]+'
like 'which says why and how to change it' "$(cat "$T/refused")" 'storage_full.*reserve.*state.reserve'
ok 'that is bad health' healthy degraded
like 'with the reason' "$(req http://x/healthz)" '"detail":".*reserve'
ok 'the run is told' wait_for 20 told
go
ok 'and ends well' wait_for 30 has_status "$run" succeeded
like 'with what there was room for' "$(abctl show "$run" --json | json 'JSON.stringify(l.result.artifacts.map(x=>x.path))')" 'out/a","out/c'
like 'and a word on the rest' "$(abctl show "$run" --json | json 'JSON.stringify(l.result.skippedArtifacts)')" 'out/b.*no room'
is 'the next one waits' "$(status "$next")" queued
room
ok 'until there is room' wait_for 20 has_status "$next" running
is 'new ones are taken' "$(new_run)" '202 '
ok 'healthy' wait_for 10 healthy ok
run=$next
ok 'it works' wait_for 20 abctl exec "$session" -- test -e started
go
ok 'and ends' wait_for 30 has_status "$run" succeeded

# nothing left: what an agent prints waits in its pipe
begin flood
full
go
ok 'the agent prints more than its pipe holds' wait_for 10 abctl exec "$session" -- test -e printing
is 'and goes on' "$(status "$run")" running
like 'no new run' "$(new_run)" '^507 [0-9]+'
room
ok 'room again: it comes to its end' wait_for 20 has_status "$run" succeeded
is 'nothing that it printed is missing' "$(abctl logs "$run" --json |
	json 'e.filter(x=>x.type==="agent.message").map(x=>x.text).join("\n").split(/\n+/).filter(x=>x).join("\n")' | md5sum)" "$({ seq $LINES; echo over; } | md5sum)"

# nothing left, and it has to end: its result waits for room
begin x
full
abctl cancel --now "$run" >/dev/null 2>&1 || req -X DELETE "http://x/v1/runs/$run?now=1" >/dev/null
unsaved() { req http://x/healthz | grep -q '"runsUnsaved":1'; }
ok 'degraded, with the number of runs' wait_for 30 unsaved
like 'in the statistics' "$(req http://x/v1/stats)" '"runsUnsaved":1'
like 'and in the log' "$(grep "$run" "$T/log")" 'its result is not saved'
is 'the run is not said to be over' "$(abctl show "$run" --json | json 'l.state')" saving
room
ok 'room again: the run ends' wait_for 30 has_status "$run" cancelled
ok 'healthy again' wait_for 10 healthy ok

# all of it is there, also after a death
kill -9 "$DAEMON"
wait "$DAEMON" 2>/dev/null
start_daemon --config "$T/agentboxd.yaml"
is 'every run has its end' "$(abctl runs --json | json 'l.runs.map(x=>x.status).sort().join()')" \
	cancelled,succeeded,succeeded,succeeded,succeeded
is 'and no number is missing' "$(req "http://x/v1/sessions/$session/events" | json 'e.every((x,i)=>x.seq===i+1)')" true
finish
