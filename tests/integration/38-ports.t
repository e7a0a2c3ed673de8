#!/usr/bin/env bash
# Ports in: listeners of a jail, reached from the host by abctl forward and by HTTP.
. tests/integration/lib.sh

mkdir -p "$T/harnesses" "$T/policy"
cat >"$T/agentboxd.yaml" <<YAML
harness_dirs: [$T/harnesses]
YAML
cat >"$T/policy/web.yaml" <<'YAML'
ports: [3000, 3001, 3002, 3003, 3009]
YAML
cat >"$T/harnesses/server.md" <<'MD'
---
name: server
description: serves until it is cancelled
backend: exec
policy: web
command: [python3, ports.py, serve]
---
MD
cat >"$T/harnesses/closed.md" <<'MD'
---
name: closed
description: a policy that lets nobody in
backend: exec
command: [sh, -c, "python3 -m http.server 3000 --bind 127.0.0.1"]
---
MD
# From copies, so that a new program can take their place.
built=$(realpath "$BIN")
mkdir -p "$T/bin" "$T/share"
cp "$built"/agentboxd "$built"/agentbox-* "$T/bin/"
ln -s "$PWD/harnesses" "$T/share/harnesses"
ln -s "$built/abctl" "$T/bin/abctl"
BIN=$T/bin
start_daemon --config "$T/agentboxd.yaml" --share "$T/share" || { echo "not ok 1 - start"; echo 1..1; exit 1; }

ports() { timeout 120 python3 tests/integration/ports.py "$@"; }
api() { curl -sS -m 60 --unix-socket "$T/sock" "$@"; }
status() { abctl show "$1" --json | json 'l.status'; }
has_status() { [ "$(status "$1")" = "$2" ]; }
session_of() { abctl show "$1" --json | json 'l.sessionId'; }
detach() { abctl run "$@" --detach --json | json 'l.runId'; }

# The sessions and the server's file; the same name is the run's, by USER/GOAL.
make_session() { # GOAL
	local id
	id=$(api http://x/v1/sessions -d "{\"userId\":\"u\",\"goalId\":\"$1\"}" | json 'l.sessionId')
	abctl exec "u/$1" -- sh -c 'cat >ports.py' <tests/integration/ports.py 2>/dev/null
	echo "$id"
}
serving() { api "http://x/v1/sessions/$1/ports/3000/echo" | grep -q '"method": "GET"'; }
session=$(make_session g)
other=$(make_session h)
run=$(detach server -s u/g -p x)
ok 'a server in a run answers through the control socket' wait_for 60 serving "$session"
by_path=http://x/v1/sessions/$session/ports/3000
by_name=http://3000--$session.localhost

# ---- HTTP ----
field() { json "l.headers.filter(([k])=>k.toLowerCase()==='$1').map(([,v])=>v).join('|')"; }
api "$by_path/echo?a=b+c&d=%2Fe&f" -H 'X-Mine: 1' -H 'Cookie: site=secret' -H 'Authorization: Bearer secret' \
	-H 'Connection: close, X-Hop' -H 'X-Hop: 1' >"$T/echo"
is 'by path: the path and the query as they were sent' "$(json 'l.path' <"$T/echo")" '/echo?a=b+c&d=%2Fe&f'
is 'the Host is the server'"'"'s own' "$(field host <"$T/echo")" localhost:3000
is 'headers are passed on' "$(field x-mine <"$T/echo")" 1
is 'but for those of one hop' "$(field x-hop <"$T/echo")" ''
is 'and no credential of the API'"'"'s origin' "$(field cookie <"$T/echo")$(field authorization <"$T/echo")" ''
is 'it knows where it is shown' "$(field x-forwarded-prefix <"$T/echo")" "/v1/sessions/$session/ports/3000"
api "$by_name/echo" -H 'Cookie: own=1' -H 'Authorization: Bearer own' >"$T/echo"
is 'by name: the Host as it was sent' "$(field host <"$T/echo")" "3000--$session.localhost"
is 'and what is sent to that origin' "$(field cookie <"$T/echo") $(field authorization <"$T/echo")" 'own=1 Bearer own'
is 'a name without an underscore' "$(api "http://3000--${session/_/-}.localhost/echo" | json 'l.method')" GET
for method in POST PUT PATCH DELETE OPTIONS; do
	is "$method" "$(api "$by_path/echo" -X $method -d abc | json 'l.method+l.n')" "${method}3"
done
like 'HEAD' "$(api -I "$by_path/echo")" 'HTTP/1.1 200'
is 'bodies flow in, of any length' "$(ports upload "$T/sock" "/v1/sessions/$session/ports/3000/echo" 40000000)" 'True True '
like 'chunked, after an interim answer' "$(api -i "$by_path/chunked")" '^one,two$'
is 'whose headers are not the answer'"'"'s' "$(api -i "$by_path/chunked" | grep -ciE '^(x-early|x-trailer)')" 0
is 'until the connection ends' "$(api "$by_path/close")" 'until the end'
like 'no content' "$(api -i "$by_path/empty")" 'HTTP/1.1 204'
is 'what cannot be understood is 502' "$(for p in garbage silent headers split 101; do api -o /dev/null -w '%{http_code} ' "$by_path/$p"; done)" '502 502 502 502 502 '
ok 'an answer cut short is seen to be' not api -f "$by_path/short"
is 'an early refusal is the answer' "$(head -c 5000000 /dev/zero | api "$by_path/early" --data-binary @- -H 'Expect:')" stop
is '50 MB out' "$(api "$by_path/big" | wc -c)" 50000000
api -i "$by_path/moved" >"$T/moved"
like 'by path: a redirect stays within' "$(cat "$T/moved")" "^Location: /v1/sessions/$session/ports/3000/echo"
is 'no cookie for the API'"'"'s origin, nor what acts on others' "$(grep -ciE '^(set-cookie|x-hop|alt-svc|clear-site-data)' "$T/moved")" 0
like 'the rest comes' "$(cat "$T/moved")" '^X-Kept: 1'
like 'and a page would be nothing but text' "$(cat "$T/moved")" '^Content-Security-Policy: sandbox'
api -i "$by_name/moved" >"$T/moved"
like 'by name: as it is' "$(cat "$T/moved")" '^Location: http://localhost:3000/echo'
is 'with the cookies of that name alone' "$(grep -i '^set-cookie' "$T/moved" | tr -d '\r')" 'Set-Cookie: a=b; Path=/'
is 'a web socket by path' "$(ports ws "$T/sock" "/v1/sessions/$session/ports/3000/ws" x)" 'HTTP/1.1 101 Switching Protocols
True True'
is 'a web socket by name, of its own page' "$(ports ws "$T/sock" /ws "3000--$session.localhost" "http://3000--$session.localhost")" 'HTTP/1.1 101 Switching Protocols
True True'
like 'events come as they are sent' "$(timeout 2 curl -sSN --unix-socket "$T/sock" "$by_path/events")" 'data: 5'
is '100 at once' "$(ports parallel 100 "$by_path/echo" "$T/sock")" 100

# ---- pages ----
code() { api -o /dev/null -w '%{http_code}' "$@"; }
is 'the API answers no web page' "$(code http://x/v1/sessions -H 'Origin: http://x')$(code http://x/v1/sessions -H 'Sec-Fetch-Site: same-origin')" 403403
is 'not one of a jail either' "$(code http://x/v1/reload -X POST -H "Origin: $by_name")" 403
is 'nor does a port by path' "$(code "$by_path/echo" -H 'Sec-Fetch-Site: none')$(code "$by_path/echo" -H 'Sec-Fetch-Site: same-origin')$(code "$by_path/echo" -H 'Origin: null')" 200403403
is 'a name answers its own' "$(code "$by_name/echo" -H 'Sec-Fetch-Site: same-origin')$(code "$by_name/echo" -H "Origin: $by_name")" 200200
is 'and no other'"'"'s' "$(code "$by_name/echo" -H 'Sec-Fetch-Site: same-site')$(code "$by_name/echo" -H 'Origin: http://evil.example')$(code "$by_name/echo" -X POST -H 'Sec-Fetch-Site: cross-site' -H 'Sec-Fetch-Mode: navigate')" 403403403
is 'but for a link that is followed' "$(code "$by_name/echo" -H 'Sec-Fetch-Site: cross-site' -H 'Sec-Fetch-Mode: navigate')" 200
like 'a web socket of another page is refused' "$(ports ws "$T/sock" /ws "3000--$session.localhost" http://evil.example)" 403

# ---- abctl forward ----
"$BIN/abctl" --socket "$T/sock" --json forward u/g 0:3000 0:3001 '[::1]:0:3002' 0:3002 >"$T/fwd" 2>"$T/fwd.err" &
forward=$!
ok 'forward says where it listens' wait_for 20 eval "[ \$(wc -l <$T/fwd) = 4 ]"
local_port() { sed -n "$1p" "$T/fwd" | json 'String(l.local)'; }
is 'HTTP through it' "$(curl -sS -m 20 "http://127.0.0.1:$(local_port 1)/echo" | json 'l.headers.length>1')" true
is 'each end by itself' "$(ports half "$(local_port 2)")" 123456
is 'a listener on ::1 alone' "$(ports echo "$(local_port 4)" 20000000)" True
like 'on an address of its own' "$(sed -n 3p "$T/fwd")" '"address":"::1"'
is 'web sockets' "$(ports ws-tcp "$(local_port 1)")" 'HTTP/1.1 101 Switching Protocols
True True'
is '100 at once through it' "$(ports parallel 100 "http://127.0.0.1:$(local_port 1)/echo")" 100
is 'stdio' "$(printf 12345 | abctl forward u/g --stdio 3001)" 5
fails() { # CODE TEXT ARGV: abctl forward
	local code=$1 text=$2
	shift 2
	timeout 60 "$BIN/abctl" --socket "$T/sock" forward "$@" >"$T/out" 2>&1
	[ $? = "$code" ] && grep -qE "$text" "$T/out" || { cat "$T/out"; return 1; }
}
ok 'a port that the policy does not name' fails 100 'port 3004 .*`ports: \[3000, 3001' u/g 3004
ok 'nor with stdio' fails 100 'port 3004 .*remedy' u/g --stdio 3004
ok 'one on which nobody listens' fails 111 'nothing in the jail listens on port 3009' u/g --stdio 3009
ok 'one that takes no connection' fails 111 'takes no connection within 5 s' u/g --stdio 3003
ok 'what is no port' fails 100 'is not \[ADDRESS:\]\[LOCAL:\]PORT' u/g 99999
ok 'a session without a jail' fails 111 'has no jail now' u/h 3000
ok 'a session that is not there' fails 100 'no session' u/nobody 3000
is 'over HTTP' "$(code "$by_path/../3004/echo" --path-as-is)$(code "http://x/v1/sessions/$session/ports/3004/")$(code "http://x/v1/sessions/$session/ports/3009/")$(code "http://x/v1/sessions/$other/ports/3000/")$(code "http://x/v1/sessions/ses_00000000000000000000000000/ports/3000/")" 404403502409404

# ---- other jails, and what a jail has of it ----
closed=$(detach closed -s u/h -p x)
in_jail() { [ "$(code "http://x/v1/sessions/$other/ports/3000/")" != 409 ]; } # it has one a moment after its slot
wait_for 30 in_jail
is 'a policy without ports lets nobody in' "$(code "http://x/v1/sessions/$other/ports/3000/")" 403
is 'nor by another session'"'"'s name' "$(code "http://3000--$other.localhost/")" 403
abctl cancel "$closed" >/dev/null
is 'the jail has no route for it' "$(abctl exec u/g -- python3 -c 'import socket; s=socket.socket(); s.settimeout(3)
try: s.connect(("127.0.0.1", 3999)); print("connected")
except OSError as e: print(type(e).__name__)' 2>/dev/null)" ConnectionRefusedError
like 'ps names the ports' "$(abctl ps)" '3000, 3001, 3002, 3003, 3009'
is 'and so does the session' "$(abctl session show u/g --json | json 'l.ports.length')" 5

# ---- bounds, backpressure ----
supervisor=$(child_pid agentbox-supervisor)
rss() { awk '/VmRSS/ { print $2 }' "/proc/$1/status"; }
before=$(rss "$supervisor")
for _ in 1 2 3 4 5 6 7 8; do
	# shellcheck disable=SC2216 # what does not read is the point
	(api -N "$by_path/big" | sleep 4) 2>/dev/null &
	slow="${slow:-} $!"
done
sleep 3
sanitized || ok 'who does not read costs buffers and no more' test $(($(rss "$supervisor") - before)) -lt 8192
is 'and holds nobody up' "$(code "$by_path/echo")" 200
# shellcheck disable=SC2086 # a list
wait $slow

# ---- reload, crash, death ----
abctl reload >/dev/null
is 'a reload changes nothing' "$(code "$by_path/echo")" 200
sed -i 's/3009/3010/' "$T/policy/web.yaml"
abctl reload >/dev/null
is 'but for what it takes away' "$(code "http://x/v1/sessions/$session/ports/3009/")$(code "http://x/v1/sessions/$session/ports/3010/")" 403502
since() { abctl version --json | json 'l.daemon.agentboxd.since'; }
later() { [ "$(since)" != "$1" ]; }
old=$(since)
cp "$built/agentboxd" "$T/bin/new" && mv "$T/bin/new" "$T/bin/agentboxd"
abctl reload >/dev/null
ok 'a new agentboxd takes over' wait_for 60 later "$old"
ok 'and reaches the same jail' wait_for 60 serving "$session"
is 'no further than before' "$(code "http://x/v1/sessions/$session/ports/3009/")" 403
supervisor=$(child_pid agentbox-supervisor)
mkfifo "$T/held"
ports hold "$T/sock" "/v1/sessions/$session/ports/3001" 300 <"$T/held" >"$T/hold" &
hold=$!
exec 9>"$T/held"
ok 'one jail has 256 connections' wait_for 60 grep -q '^256 HTTP/1.1 429' "$T/hold"
is 'the API goes on' "$(code http://x/healthz)" 200
kill -9 "$supervisor"
ok 'the next supervisor reaches the same jail' wait_for 60 serving "$session"
exec 9>&-
wait $hold
is 'what was open through the dead one has ended' "$(tail -n 1 "$T/hold")" 'ended 256'
is 'forward goes on through the next' "$(curl -sS -m 20 "http://127.0.0.1:$(local_port 1)/echo" | json 'l.method')" GET
mkfifo "$T/held2"
ports hold "$T/sock" "/v1/sessions/$session/ports/3001" 3 <"$T/held2" >"$T/hold2" &
hold=$!
exec 9>"$T/held2"
ok 'connections are open' wait_for 20 grep -q '^3 ' "$T/hold2"
abctl cancel "$run" >/dev/null
ok 'the run ends' wait_for 30 has_status "$run" cancelled
exec 9>&-
wait $hold
is 'connections end with the jail' "$(tail -n 1 "$T/hold2")" 'ended 3'
wait $forward
is 'and so does forward' "$?" 0
like 'which says so' "$(cat "$T/fwd.err")" 'the jail has ended'
is 'then there is nothing to reach' "$(code "$by_path/echo")" 409
finish
