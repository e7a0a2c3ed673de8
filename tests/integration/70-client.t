#!/usr/bin/env bash
# Hostile and careless clients of the socket: a clear answer, and the daemon lives.
. tests/integration/lib.sh

mkdir -p "$T/etc/harnesses"
printf -- '---\nbackend: exec\ncommand: [sleep, "1"]\n---\n' >"$T/etc/harnesses/second.md"
: >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
super=$(child_pid agentbox-supervisor)
raw() { node tests/integration/raw.mjs "$T/sock" "$@"; }
req() { curl -sS -m 20 --unix-socket "$T/sock" "$@"; }
code() { req -o "$T/body" -w '%{http_code}' "$@"; }

like 'garbage' "$(printf 'NONSENSE\r\n\r\n' | raw)" '^(HTTP/1\.[01] 400|closed)'
like 'a request line of 100 KB' "$( (printf 'GET /'; head -c 100000 /dev/zero | tr '\0' a; printf ' HTTP/1.1\r\nHost: x\r\n\r\n') | raw)" '^HTTP/1\.[01] (414|431|400)'
like 'headers of 1 MB' "$( (printf 'GET /healthz HTTP/1.1\r\nHost: x\r\n'; for i in $(seq 2000); do printf 'X-%d: %0500d\r\n' "$i" 1; done; printf '\r\n') | raw)" '^HTTP/1\.[01] (431|400|413)|closed'
like 'two requests in one packet are answered in order' \
	"$(printf 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' | raw | tr '\n' ' ')" '200 .*200 '
like 'half-closed after the request' "$(printf 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' | raw --end)" '^HTTP/1\.1 200'
# A half-closed client has not left: it waits for what comes in a second.
half() {
	timeout 60 python3 - "$T/sock" "$1" "$2" <<'P'
import socket, sys
body = b'{"session":{"userId":"u","goalId":"half"},"harness":"second","prompt":"x"}'
c = socket.socket(socket.AF_UNIX)
c.connect(sys.argv[1])
c.sendall(b"POST /v1/runs%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%sContent-Length: %d\r\n\r\n" % (
    sys.argv[2].encode(), b"Accept: %s\r\n" % sys.argv[3].encode(), len(body)) + body)
c.shutdown(socket.SHUT_WR)
while piece := c.recv(65536):
    print(piece.decode(), end="")
P
}
like 'half-closed: the result of a run still comes' "$(half '?wait=1' '*/*')" '"status":"succeeded"'
like 'half-closed: and its stream to the end' "$(half '' text/event-stream)" 'event: run.done'
is 'an unknown path' "$(code http://x/v1/nosuch)" 404
like 'as a problem' "$(cat "$T/body")" '"type":"urn:agentbox:error:not_found"'
is 'a known path, wrong method' "$(code -X PATCH http://x/v1/runs)" 405
is 'no JSON' "$(code http://x/v1/runs -d '{nope')" 400
like 'says where' "$(cat "$T/body")" 'byte'
is 'an unknown field' "$(code http://x/v1/runs -d '{"session":{"userId":"u","goalId":"g"},"harness":"hello","prompt":"x","promt":"y"}')" 400
like 'says which' "$(cat "$T/body")" 'promt'
is 'a missing field' "$(code http://x/v1/runs -d '{"session":{"userId":"u"},"harness":"hello","prompt":"x"}')" 400
like 'by its path' "$(cat "$T/body")" 'session\.goalId'
is 'a wrong type' "$(code http://x/v1/runs -d '{"session":{"userId":"u","goalId":1},"harness":"hello","prompt":"x"}')" 400
is 'an unknown harness' "$(code http://x/v1/runs -d '{"session":{"userId":"u","goalId":"g"},"harness":"nosuch","prompt":"x"}')" 404
is 'a million brackets' "$(head -c 1000000 /dev/zero | tr '\0' '[' | code http://x/v1/runs --data-binary @-)" 400
is 'a body of 64 MB' "$(head -c 67108864 /dev/zero | code http://x/v1/runs -H Expect: --data-binary @-)" 413
is 'an unknown policy for a jail' "$(code http://x/v1/jails -H 'Connection: Upgrade' -H 'Upgrade: agentbox-stdio' -d '{"argv":["true"],"policy":"nosuch"}')" 404
is 'a jail without upgrade' "$(code http://x/v1/jails -d '{"argv":["true"]}')" 426
is 'an unknown run' "$(code http://x/v1/runs/run_00000000000000000000000000)" 404
is 'no run id at all' "$(code 'http://x/v1/runs/..%2f..%2fetc')" 404
is 'an artifact outside' "$(abctl run hello -s u/a -p x --json >"$T/r"; code --path-as-is "http://x/v1/runs/$(json 'l.run' <"$T/r")/artifacts/..%2f..%2f..%2fetc%2fpasswd")" 404
like 'a slow client does not hold the others' "$( (printf 'GET /hea'; sleep 1) | raw & req http://x/healthz; wait %%)" 'ok|\{'
raw --idle 1500 --then /healthz >"$T/out"
like '1500 idle connections: still answering' "$(cat "$T/out")" '200'
like 'a frame of no known stream ends the connection' "$(raw --bad-frames)" 'closed'
for i in 1 2 3 4 5; do
	is "a frame that comes with the request does not disturb what is sent ($i)" "$(raw --eager)" '7,7 {"layers":'
done
is 'a gone client does not cancel its run' "$(req -m 0.3 http://x/v1/runs -H 'Accept: text/event-stream' -d '{"session":{"userId":"u","goalId":"gone"},"harness":"hello","prompt":"x"}' >/dev/null 2>&1; sleep 2; abctl runs --session u/gone --json | json 'l.status||(l.runs&&l.runs[0].status)')" succeeded
like 'the API describes itself' "$(req http://x/v1/openapi.json)" '"openapi"'
like 'metrics' "$(req http://x/metrics)" '^agentbox_runs_total\{status="succeeded"\} [1-9]'
is 'the supervisor is the same process' "$(child_pid agentbox-supervisor)" "$super"
su nobody -s /bin/sh -c "curl -sS --unix-socket $T/sock http://x/healthz" >"$T/out" 2>&1
ok 'a stranger is not let in' test $? -ne 0
finish
