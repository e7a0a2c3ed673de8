#!/usr/bin/env bash
# API keys: a tenant sees and does what is its own, on every route there is, within the key's bounds;
# a revoked key is cut at once; what is kept of it survives SIGKILL.
. tests/integration/lib.sh
. tests/integration/runs.sh

script say 'read -r m; echo "said $m"; mkdir -p out ~/out; echo "$m" | tee out/kept.txt >~/out/kept.txt' 'artifacts: [out/**]'
script wait 'echo on; while [ ! -e go ]; do sleep 0.1; done' 'limits: { timeoutMs: 60000 }'
harness say-other 'pipeline: [{ harness: say, prompt: a }, { harness: other, prompt: b }]'
harness other 'backend: exec' 'command: [sh, -c, "echo other"]' 'policy: strict'
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }

api_get() { curl -sS --unix-socket "$T/sock" "http://x$1"; }
as() { # KEY ARGS...
	local key=$1
	shift
	"$BIN/abctl" --socket "$T/sock" --key-file "$T/$key.key" "$@"
}
add() { # NAME ARGS...: its secret in NAME.key
	local name=$1
	shift
	abctl key add "$name" "$@" >"$T/$name.key" 2>"$T/$name.said"
}
status() { # KEY METHOD PATH [BODY]
	curl -sS -o "$T/body" -w '%{http_code}' --unix-socket "$T/sock" -X "$2" -H "Authorization: Bearer $(cat "$T/$1.key")" \
		${4:+-d "$4"} "http://x$3"
}

# making one
ok 'a key is made' add acme
like 'it is 256 random bits' "$(cat "$T/acme.key")" '^abk_[0-9a-z]{26}_[0-9a-f]{64}$'
like 'and said to be shown once' "$(cat "$T/acme.said")" 'key acme of tenant acme; it is shown this once'
ok 'another' add bolt
not add bolt >/dev/null
like 'a name is taken once' "$(cat "$T/bolt.said")" "there is a key 'bolt' already"
add bolt2 --tenant bolt >/dev/null
cp "$T/bolt2.key" "$T/bolt.key"
like 'what is shown of it has no secret' "$(abctl key show acme --json)" '"tenant":"acme"'
is 'nor is it in the state' "$(grep -rlF "$(sed 's/.*_//' "$T/acme.key")" "$T/state" "$T/log")" ''
like 'names that are not there are told' "$(abctl key add odd --harness helo --policy nope 2>&1 >/dev/null; abctl key rm odd)" 'notice: .*helo.*hello'
like 'of policies, too' "$(abctl key add odd --harness hello --policy nope 2>&1 >/dev/null; abctl key rm odd)" 'notice: .*nope'
is 'and those that are there are not' "$(abctl key add odd --harness hello --policy default 2>&1 >/dev/null | grep -c notice; abctl key rm odd >/dev/null)" 0
like 'nothing between two commas is no verb' "$(abctl key add odd --verbs read,,run 2>&1)" "verbs: '' is none of read run"
like 'only root makes keys' "$(as acme key add evil 2>&1)" 'a key may not POST /v1/keys'
printf 'abk_%026d_%064d\n' 0 0 >"$T/none.key"
is 'an unknown key' "$(status none GET /v1/runs)" 401
sed 's/.$/x/' "$T/acme.key" >"$T/near.key"
is 'one with a wrong digit' "$(status near GET /v1/runs)" 401
: >"$T/empty.key"
cut -c2- "$T/acme.key" >"$T/cut.key"
is 'none where one should be: nobody becomes the operator by it' "$(status empty GET /v1/runs)" 401
is 'nor by one that is cut off' "$(status cut GET /v1/runs)" 401
like 'which is said' "$(cat "$T/body")" 'Authorization is no key of agentbox'
is 'nor by another scheme' "$(curl -sS -o "$T/body" -w '%{http_code}' --unix-socket "$T/sock" -u root:x http://x/v1/runs)" 401
is 'nor by two' "$(curl -sS -o "$T/body" -w '%{http_code}' --unix-socket "$T/sock" -H "Authorization: Bearer $(cat "$T/acme.key")" \
	-H 'Authorization: Bearer x' http://x/v1/runs)" 401

# two tenants and nobody's, users of one name
for who in acme bolt; do as $who run say -s ana/deck -p "marker-of-$who" --json >"$T/$who.out"; done
abctl run say -s ana/deck -p marker-of-nobody --json >"$T/nobody.out"
about() { # NAME
	json 'JSON.stringify({run:l.run,session:l.session,marker:"marker-of-'"$1"'",tenant:"'"$1"'",harness:"say",policy:"default",path:"out/kept.txt"})' <"$T/$1.out" >"$T/$1.json"
	sed 's/.*"session":"\([^"]*\)".*/\1/' "$T/$1.json"
}
sessions=$(for who in acme bolt nobody; do about $who; done)
is 'have three sessions' "$(sort -u <<<"$sessions" | wc -l)" 3
acme=$(json 'l.run' <"$T/acme.out")
is 'each sees its own' "$(as acme runs --json | json 'l.runs.map(x=>x.runId+x.tenant).join()')" "${acme}acme"
is 'who asks without a key sees all' "$(abctl runs --json | grep -o '"runId"' | wc -l)" 3
is 'or one tenant' "$(api_get '/v1/runs?tenant=acme&user=ana' | json 'l.runs.map(x=>x.runId).join()')" "$acme"
is 'a page is full of its own' "$(status acme GET '/v1/runs?limit=1') $(json 'l.runs.length' <"$T/body")" '200 1'
is 'counts are its own' "$(as acme stats --json | json 'JSON.stringify(l.runs)')" '{"succeeded":1}'

# every route there is
out=$(python3 tests/integration/walk.py "$T/sock" "$T/bolt.key" "$T/bolt.json" "$T/acme.json" "$T" marker-of-nobody 2>&1)
is 'every route, with a foreign key' "$?" 0 || printf '# %s\n' "$out"
out=$(python3 tests/integration/walk.py "$T/sock" "$T/acme.key" "$T/acme.json" "$T/nobody.json" "$T" marker-of-bolt 2>&1)
is 'and with what is of no tenant' "$?" 0 || printf '# %s\n' "$out"

# bounds
add some --tenant acme --user ana --user bo --harness say --policy default --verbs read,run,session
is 'a user that is not among its own' "$(status some POST /v1/runs '{"session":{"userId":"eve","goalId":"g"},"harness":"say","prompt":"p"}')" 403
is 'a harness' "$(status some POST /v1/runs '{"session":{"userId":"bo","goalId":"g"},"harness":"other","prompt":"p"}')" 404
add steps --tenant acme --harness say --harness say-other
is 'or one by way of a pipeline' "$(status steps POST /v1/runs '{"session":{"userId":"bo","goalId":"g"},"harness":"say-other","prompt":""}')" 403
like 'with the step that is meant' "$(cat "$T/body")" "step 2 of harness 'say-other': key steps is not for harness 'other'"
is 'a verb' "$(status some DELETE "/v1/runs/$acme")" 403
like 'is named' "$(cat "$T/body")" "lacks the verb 'steer'"
session=$(json 'l.session' <"$T/acme.out")
is 'a home is for who may start commands' "$(status some GET "/v1/sessions/$session/home") $(status some PUT "/v1/sessions/$session/home/x") $(status some GET "/v1/sessions/$session/files")" '403 403 200'
is 'what it may' "$(status some POST '/v1/runs?wait=1' '{"session":{"userId":"bo","goalId":"g"},"harness":"say","prompt":"p"}')" 200
is 'harnesses that it may start' "$(as some harness ls --json | json 'l.harnesses.map(x=>x.name).join()')" say
is 'policies' "$(as some policy ls --json | json 'l.policies.map(x=>x.name).join()')" default
as acme run wait -s eve/live -p x --detach >"$T/live"
live=$(api_get "/v1/runs/$(cat "$T/live")" | json 'l.sessionId')
is 'another user of its tenant' "$(status some GET "/v1/sessions/$live")" 404
is 'events of a session may be of other harnesses' "$(status some GET "/v1/sessions/$(json 'l.session' <"$T/acme.out")/events")" 403
add strict --tenant acme --policy strict
is 'a policy that is not among its own' "$(status strict POST /v1/runs '{"session":{"userId":"bo","goalId":"g"},"harness":"say","prompt":"p"}')" 403
not as strict jail --policy default -- true 2>"$T/err"
like 'not for commands either' "$(cat "$T/err")" "not for policy 'default'"
not as acme jail --bind /usr:/mnt -- true 2>"$T/err"
like 'no directory of the host' "$(cat "$T/err")" 'a key may not bring directories of the host'
ok 'a command in its own session' as acme exec "$live" -- true
is 'jails of its own' "$(as acme ps --json 2>/dev/null | json 'l.jails?l.jails.length:l.runs.length') $(as bolt ps --json | json 'l.jails?l.jails.length:l.runs.length')" '1 0'

# rates
add slow --tenant acme --rate 3 --run-rate 1
is 'requests' "$(for _ in 1 2 3 4; do status slow GET /v1/runs; echo; done | sort | uniq -c | tr -s ' \n' ' ')" ' 3 200 1 429 '
add seldom --tenant acme --run-rate 1
for _ in 1 2; do status seldom POST /v1/runs '{"session":{"userId":"bo","goalId":"h"},"harness":"say","prompt":"p"}'; done >"$T/twice"
is 'runs' "$(cat "$T/twice")" 202429
like 'after so many seconds' "$(curl -sS -D - -o /dev/null --unix-socket "$T/sock" -H "Authorization: Bearer $(cat "$T/seldom.key")" \
	-d '{"session":{"userId":"bo","goalId":"h"},"harness":"say","prompt":"p"}' http://x/v1/runs)" '^Retry-After: (5[0-9]|60)'

# who did what
audit=$(abctl audit --json)
session=$(sed -n 's/.*"session":"\([^"]*\)".*/\1/p' "$T/acme.json")
is 'who started a run, and in which session' "$(json "e.filter(x=>x.run==='$acme').map(x=>[x.key,x.tenant,x.method,x.path,x.status,x.session].join()).join()" <<<"$audit")" \
	"acme,acme,POST,/v1/runs,202,$session"
is 'who made keys, who was refused, also without a key that is one, and who looked for what is another'"'"'s' "$(json '[
	e.filter(x=>x.path==="/v1/keys"&&x.status===201).every(x=>x.uid===0&&!x.key),
	e.some(x=>x.refused&&x.key==="some"&&x.method==="DELETE"&&x.status===403),
	e.some(x=>x.refused&&x.status===401&&!x.key),
	e.some(x=>x.key==="bolt2"&&x.method==="GET"&&x.status===404)].join()' <<<"$audit")" true,true,true,true
is 'who only looks is not told of' "$(grep -cE '"method":"GET".*"status":200' <<<"$audit")" 0
is 'nobody but root reads it' "$(status acme GET /v1/audit)" 403
is 'neither a key nor a prompt is in it' "$(cat "$T"/state/supervisor/audit/* | grep -cE "marker-of|$(sed 's/.*_//' "$T/acme.key")|$(sed 's/.*_//' "$T/bolt.key")")" 0

# revoked, expired
as acme logs "$(cat "$T/live")" -f >"$T/follow.out" 2>&1 &
follow=$!
ok 'a stream is open' wait_for 10 grep -q on "$T/follow.out"
ok 'keys survive SIGKILL' kill_child agentbox-supervisor
is 'of the supervisor' "$(as acme runs --json | json 'l.runs.length>2')" true
curl -sSN --unix-socket "$T/sock" -H "Authorization: Bearer $(cat "$T/acme.key")" "http://x/v1/runs/$(cat "$T/live")/events?follow=1" >"$T/cut.out" 2>"$T/cut.err" &
cut=$!
ok 'a stream is open again' wait_for 10 grep -q run.started "$T/cut.out"
abctl audit -f >"$T/audit.out" 2>&1 &
follower=$!
ok 'the audit log is followed' wait_for 10 grep -q POST "$T/audit.out"
ok 'a key is revoked' abctl key rm acme
wait $cut
is 'what is open is cut' "$?" 18
ok 'which whoever follows the audit log sees' wait_for 10 grep -qE 'uid 0 DELETE /v1/keys/acme 204' "$T/audit.out"
is 'and nothing more is answered' "$(status acme GET /v1/runs)" 401
is 'its runs go on' "$(api_get "/v1/runs/$(cat "$T/live")" | json 'l.status')" running
kill_child agentbox-supervisor
wait $follower
like 'the audit log goes on' "$(abctl audit | tail -n 3)" 'DELETE /v1/keys/acme 204|refused'
is 'also after SIGKILL' "$(status acme GET /v1/runs) $(status some GET /v1/runs)" '401 200'
wait $follow
abctl cancel "$(cat "$T/live")" --now >/dev/null
add brief --tenant bolt --expires "$(date -u -d '+2 seconds' +%Y-%m-%dT%H:%M:%S.000Z)"
is 'a key for a moment' "$(status brief GET /v1/runs)" 200
curl -sSN --unix-socket "$T/sock" -H "Authorization: Bearer $(cat "$T/brief.key")" 'http://x/v1/egress?follow=1' >/dev/null 2>&1
is 'is cut when it is over' "$(status brief GET /v1/runs)" 401
like 'and listed so' "$(abctl key show brief --json)" '"expired":true'
finish
