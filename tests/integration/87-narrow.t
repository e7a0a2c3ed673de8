#!/usr/bin/env bash
# A harness leaves its runs less than their policy lets out, some hosts and some secrets, and never more.
. tests/integration/lib.sh

PORT=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })')
SERVER=''
trap 'kill $SERVER 2>/dev/null; _at_exit' EXIT
: >"$T/asked"
python3 tests/integration/echo.py "$PORT" "$T/asked" x >"$T/server.out" 2>&1 &
SERVER=$!
wait_for 30 grep -q ready "$T/server.out"
mkdir -p "$T/etc/harnesses" "$T/etc/policy"
cat >"$T/etc/policy/two.yaml" <<Y
extends: default
egress:
  inject:
    - { host: a.agentbox, upstream: "http://127.0.0.1:$PORT", header: x-api-key, secret: KEY_A, allow_loopback: true }
    - { host: b.agentbox, upstream: "http://127.0.0.1:$PORT", header: x-api-key, secret: KEY_B, allow_loopback: true }
  allow: [one.example, "*.wild.example", { addresses: [198.41.7.7], protocol: raw, ports: [7] }]
Y
printf 'secrets: { KEY_A: { env: KEY_A }, KEY_B: { env: KEY_B } }\ndefault_policy: two\n' >"$T/etc/agentboxd.yaml"
# harness NAME KEYS...: asks everybody, by name and by the address that the name would have
harness() {
	local name=$1
	shift
	printf '%s\n' '---' 'backend: exec' "$@" "command: [sh, -c, 'cat >/tmp/s; . /tmp/s']" '---' >"$T/etc/harnesses/$name.md"
}
harness all
harness only-a 'secrets: [KEY_A]'
harness no-key 'secrets: []'
harness only-one 'narrow: { egress: { only: [one.example, x.wild.example] } }'
harness host-b 'narrow: { egress: { only: [b.agentbox] } }'
harness nothing 'narrow: { egress: { only: [] } }'
harness checked 'secrets: [KEY_A]' 'verify: { command: [sh, -c, "curl -s -m 5 http://b.agentbox/whole; test $? != 0"] }'
harness wider 'narrow: { egress: { only: [other.example] } }'
harness richer 'secrets: [KEY_C]'
export KEY_A=sk-a-$RANDOM KEY_B=sk-b-$RANDOM
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
unset KEY_A KEY_B

look='for h in a.agentbox b.agentbox one.example x.wild.example y.wild.example; do getent hosts $h >/dev/null && printf "$h "; done
ask() { curl -s -m 5 -o /tmp/answer -w "%{http_code} " --resolve $1:80:$2 http://$1/whole; }
'
run() { timeout 120 "$BIN/abctl" --socket "$T/sock" run "$1" -s "u/$2" -p "$look$3" --json >"$T/out" 2>"$T/err"; }
said() { json 'e.filter(x=>x.type==="agent.message").map(x=>x.text).join("").trim()' <"$T/out"; }
narrow() { json 'JSON.stringify(e.filter(x=>x.type==="run.started")[0].narrow||null)' <"$T/out"; }
keys() { sed 's/.* //; s/-[0-9]*$//' "$T/asked" | sort -u | tr '\n' ' '; : >"$T/asked"; }
both='curl -s -o /dev/null -m 5 http://a.agentbox/whole; curl -s -o /dev/null -m 5 http://b.agentbox/whole; :'

run all a "$both"
is 'without a word of it all is there' "$(said)|$(keys)|$(narrow)" 'a.agentbox b.agentbox one.example x.wild.example y.wild.example|sk-a sk-b |null'
run only-a b "addr=\$(getent hosts a.agentbox | cut -d' ' -f1); $both"
is 'one secret' "$(said)|$(keys)|$(narrow)" 'a.agentbox one.example x.wild.example y.wild.example|sk-a |{"secrets":["KEY_A"]}'
like 'the other host is refused, with an event' "$(json 'e.filter(x=>x.type==="egress.denied").map(x=>x.host+" "+x.reason+" "+(x.add||"")).join("\n")' <"$T/out")" \
	"^b.agentbox .*left out by the harness *\$"
run all b2 'for h in a b; do getent hosts $h.agentbox | cut -d" " -f1; done >addr; ask b.agentbox $(tail -n 1 addr)'
run only-a b2 'ask b.agentbox $(tail -n 1 addr); ask a.agentbox $(tail -n 1 addr)'
is 'nor is it at its address' "$(keys)" 'sk-b '
run no-key c "$both"
is 'none' "$(said)|$(keys)|$(narrow)" 'one.example x.wild.example y.wild.example||{"secrets":[]}'
run only-one d "$both"
is 'some hosts' "$(said)|$(keys)|$(narrow)" 'one.example x.wild.example||{"egress":["one.example","x.wild.example"]}'
run host-b e "$both"
is 'a host that a secret goes to' "$(said)|$(keys)" 'b.agentbox|sk-b '
run nothing f "$both"
is 'nothing at all' "$(said)|$(keys)" '|'
run checked g :
is 'a check has no more than its run' "$(json l.result.verification.passed <"$T/out")$(keys)" true

# ---- it holds over whatever is replaced ----
abctl run only-a -s u/h -p 'echo on; until [ -e go ]; do sleep 0.05; done; '"$both" --detach --json >"$T/begun"
id=$(json l.runId <"$T/begun")
wait_for 30 sh -c "$BIN/abctl --socket $T/sock logs $id --json | grep -q agent.message"
kill_child agentbox-egress
kill_child agentbox-supervisor
ok 'a reload' abctl reload
touch "$T/state/sessions/$(json l.sessionId <"$T/begun")/workspace/go"
ended() { abctl show "$id" --json | grep -q '"exit"'; }
ok 'a run goes on over the death of egress and supervisor and a reload' wait_for 30 ended
is 'with what it had' "$(keys)" 'sk-a '

# ---- it cannot be widened ----
like 'another host is refused' "$(abctl run wider -s u/i -p x 2>&1)" "does not let out to 'other.example'"
like 'another secret, too' "$(abctl run richer -s u/j -p x 2>&1)" "injects no 'KEY_C'"
like 'and shown' "$(curl -sS --unix-socket "$T/sock" http://x/v1/harnesses/only-a)" '"secrets":\["KEY_A"\]'
finish
