#!/usr/bin/env bash
# A daemon that becomes empty: abctl drain.
. tests/integration/lib.sh
. tests/integration/runs.sh

script waits 'echo on; while ! test -e go; do sleep 0.1; done; rm go; echo over'
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
req() { curl -sS -m 20 --unix-socket "$T/sock" "$@"; }
drain() { req http://x/v1/drain | json "l.$1"; }
first_run() { abctl runs -s "u/$1" --json | json 'l.runs[0].status'; }
has() { [ "$(first_run "$1")" = "$2" ]; }
go() { abctl exec "$(json 'l.sessionId' <"$T/$1.run")" -- touch go; }
refused() { # what a run gets now
	req -o /dev/null -w '%{http_code} %header{retry-after}' -H 'Content-Type: application/json' \
		-d '{"session":{"userId":"u","goalId":"new"},"harness":"hello","prompt":"x"'"${1:-}"'}' http://x/v1/runs
}

is 'nobody drains' "$(drain draining)" false
abctl run hello -s u/early -p x --json >/dev/null
req -o /dev/null -d '{"session":{"userId":"u","goalId":"new"},"harness":"hello","prompt":"x","idempotencyKey":"k"}' 'http://x/v1/runs?wait=1'
begin waits a
a=$id
abctl run waits -s u/a -p second --detach --json >"$T/second.run"
ok 'one run, another waits for its session' has a queued
is 'a member of the group may not' "$(setpriv --reuid 12345 --regid "$(stat -c %g "$T/sock")" --clear-groups curl -sS -o /dev/null \
	-w '%{http_code}' -X POST --unix-socket "$T/sock" http://x/v1/drain)" 403
like 'drain' "$(abctl drain)" '^draining: 1 running, 1 queued'
like 'a new run is refused, with a time to come again' "$(refused)" '^503 [0-9]+'
is 'one that was accepted before is told again' "$(refused ',"idempotencyKey":"k"')" '202 '
abctl run hello -s u/b -p x >/dev/null 2>"$T/err"
is 'abctl tells it by its code' $? 111
like 'and in words' "$(cat "$T/err")" 'being drained.*try again'
not_now() { ! abctl jail -- true 2>"$T/err" && grep -q 'drained' "$T/err"; }
ok 'no new jail' not_now
like 'told by healthz' "$(req -w '%{http_code}' http://x/healthz)" '"draining","runsRunning":1,"runsQueued":1'
is 'which is no good health' "$(req -o /dev/null -w '%{http_code}' http://x/healthz)" 503
is 'by stats' "$(req http://x/v1/stats | json 'l.draining')" 1
kill_child agentbox-supervisor
is 'the next supervisor drains, too' "$(drain draining)" true
like 'and refuses' "$(refused)" '^503 [0-9]+'
is 'the run goes on' "$(status "$a")" running
timeout 60 "$BIN/abctl" --socket "$T/sock" drain --wait >"$T/waited" &
waiter=$!
go a
wait "$waiter"
is '--wait ends when nothing runs' $? 0
like 'and says so' "$(cat "$T/waited")" '^draining: 0 running, 1 queued, 0 jails$'
is 'the run has come to its end' "$(status "$a")" succeeded
is 'the queued one stays so' "$(first_run a)" queued
is 'undo' "$(abctl drain --undo)" 'runs are taken'
ok 'and it begins' wait_for 20 has a running
is 'a new one is taken' "$(refused)" '202 '
abctl drain >/dev/null
abctl run hello -s u/b -p x --detach >/dev/null 2>&1
kill -9 "$DAEMON"
wait "$DAEMON" 2>/dev/null
start_daemon --config "$T/etc/agentboxd.yaml"
is 'a new agentboxd takes runs' "$(drain draining)" false
ok 'and works' abctl run hello -s u/b -p x
is 'interrupted is what ran' "$(first_run a)" interrupted
start=$(date +%s%N)
begin waits c
like 'each answer tells the version' "$(req -D - -o /dev/null http://x/v1/runs)" '^Agentbox-Version: [0-9.]+; api=1'
stop_daemon
is 'SIGTERM is a stop' $? 0
ok 'soon' test $((($(date +%s%N) - start) / 1000000)) -lt 12000

# a daemon of another version
other() { # VERSION ABCTL-ARGS...
	rm -f "$T/other"
	T=$T node -e '
		const h = require("http").createServer((q, r) => {
			r.writeHead(200, {"Agentbox-Version": process.argv[1], "Content-Type": "application/json"});
			r.end(JSON.stringify({runs: [], version: process.argv[1]}));
		});
		h.listen(process.env.T + "/other", () => {
			require("child_process").spawn(process.argv[2], ["--socket", process.env.T + "/other", ...process.argv.slice(3)],
				{stdio: "inherit"}).on("exit", c => process.exit(c));
		});' "$1" "$BIN/abctl" "${@:2}" >"$T/out" 2>"$T/err"
}
ok 'another version of the same API works' other '9.8.7; api=1' runs
is 'and is told of, once' "$(cat "$T/err")" 'abctl: notice: the daemon is version 9.8.7, this abctl is 0.1.0: what only one of them knows is refused'
other '9.8.7; api=2' runs
is 'another API is refused' $? 111
like 'by name and with a remedy' "$(cat "$T/err")" '^abctl: system: .*API 2.*API 1.*installed with the daemon'
ok 'its version can be asked for' other '9.8.7; api=2' version
like 'and is shown' "$(cat "$T/out")" '9.8.7'
finish
