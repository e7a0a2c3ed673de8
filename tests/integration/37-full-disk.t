#!/usr/bin/env bash
# A disk without room: a run that has ended keeps its place until its result is safe, and says so.
# In a mount namespace of the test's own: the supervisor's part of the state is a small file system.
if [ "${1:-}" != inside ] && [ "$(id -u)" = 0 ]; then
	exec unshare --mount --propagation private -- bash "$0" inside
fi
. tests/integration/lib.sh

mkdir -p "$T/state/supervisor" "$T/harnesses"
mount -t tmpfs -o size=24m,mode=0700 none "$T/state/supervisor" || skip_all 'no tmpfs'
trap '[ -z "$DAEMON" ] || stop_daemon KILL; umount -l "$T/state/supervisor"; _at_exit' EXIT
printf 'harness_dirs: [%s]\n' "$T/harnesses" >"$T/agentboxd.yaml"
cat >"$T/harnesses/fill.md" <<'MD'
---
name: fill
description: ends when it is told to
backend: exec
command: [sh, -c, "touch started; while ! test -e go; do sleep 0.1; done; echo over"]
---
MD
start_daemon --config "$T/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
req() { curl -sS -m 20 --unix-socket "$T/sock" "$@"; }
health() { req http://x/healthz | json 'l.status'; }
healthy() { [ "$(health)" = "$1" ]; }
status() { abctl show "$1" --json | json 'l.status'; }
has_status() { [ "$(status "$1")" = "$2" ]; }

is 'healthy' "$(health)" ok
run=$(abctl run fill -s u/full -p x --detach --json | json 'l.runId')
session=$(abctl show "$run" --json | json 'l.sessionId')
ok 'a run works' wait_for 20 abctl exec "$session" -- test -e started
head -c 100000000 /dev/zero >"$T/state/supervisor/ballast" 2>/dev/null
abctl exec "$session" -- touch go
ok 'the disk is full: degraded' wait_for 30 healthy degraded
like 'with the number of runs' "$(req http://x/healthz)" '"runsUnsaved":1'
like 'in the statistics' "$(req http://x/v1/stats)" '"runsUnsaved":1'
like 'and in the log' "$(grep "$run" "$T/log")" 'its result is not saved'
is 'the run is not said to be over' "$(abctl show "$run" --json | json 'l.state')" saving
rm "$T/state/supervisor/ballast"
ok 'room again: the run ends' wait_for 30 has_status "$run" succeeded
ok 'healthy again' wait_for 10 healthy ok
like 'with its result whole' "$(abctl show "$run" --json)" '"finalText": ?"over"'
finish
