#!/usr/bin/env bash
# Artifacts go to root's S3 bucket, too: signed, whole or in parts, whatever becomes of the bucket, of
# agentbox-egress, of the supervisor and of agentboxd; no run waits for it and none fails by it.
. tests/integration/lib.sh
. tests/integration/runs.sh
. tests/integration/bucket.sh

# shellcheck disable=SC2016 # it is the jail's shell that expands it
script makes 'mkdir -p "out/a b"; seq 1000 >out/n.txt; : >out/empty; echo "<b>" >out/page.html;
	echo odd >"$(printf "out/a b/100%%\303\251+?#&=\n;\"")"' 'artifacts: [out/**]'
script small 'mkdir out; echo x >out/x' 'artifacts: [out/**]'
script large 'mkdir out; head -c 11000000 /dev/zero | tr "\\000" x >out/large.bin' 'artifacts: [out/**]'
script nothing 'true'
config() { bucket_config 'prefix: of/agentbox' 'part_size: 5M' 'sse: AES256' 'timeout: 1s' "$@"; }
quick='retry: {first: 20ms, most: 100ms, give_up: 1h}'
config "$quick"
bucket
bucket_daemon || { echo "not ok 1 - start"; echo 1..1; exit 1; }

# ---- what is there then ----
abctl run makes -s u/g -p x --json >"$T/one.out"
id=$(json l.run <"$T/one.out")
ses=$(json l.session <"$T/one.out")
is 'the result says that they are to be uploaded' "$(json '[...new Set(l.result.artifacts.map(x=>x.upload.status))].join()' <"$T/one.out")" pending
ok 'and then they are' wait_for 10 are 'done'
is 'all of them' "$(held 'e.length')" 4
is 'by session, run and path, under the prefix' "$(held 'e.map(x=>x.key).sort()[3]')" "of/agentbox/$ses/$id/out/page.html"
is 'also of a name that an agent has chosen' "$(held "e.some(x=>x.key==='of/agentbox/$ses/$id/out/a b/100%\u00e9+?#&=\n;\"')")" true
is 'the bytes of the result' "$(held 'e.map(x=>x.sha256).sort().join()')" "$(json 'l.result.artifacts.map(x=>x.sha256).sort().join()' <"$T/one.out")"
is 'with type, digest and encryption, to be saved and not shown' "$(held '(x=>[x.type,x.meta===x.sha256,x.sse,x.disposition].join())(e.find(x=>x.key.endsWith("page.html")))')" \
	'text/html; charset=utf-8,true,AES256,attachment'
is 'the run shows it' "$(abctl show "$id" --json | json '(x=>x.upload.status+" "+x.upload.url)(l.result.artifacts.find(x=>x.path==="out/n.txt"))')" "done s3://results/of/agentbox/$ses/$id/out/n.txt"
events() { curl -sS --unix-socket "$T/sock" "http://x/v1/sessions/$1/events?follow=0" -H 'Accept: application/x-ndjson' | json 'e.filter(x=>x.type==="artifacts.uploaded").map(x=>[x.runId,x.uploaded,x.failed].join()).join(" ")'; }
ok 'an event tells it, once' wait_for 5 test "$(events "$ses")" = "$id,4,0"
id=$(abctl run nothing -s u/g -p x --json | json l.run)
is 'a run without artifacts has none to upload' "$(abctl show "$id" --json | json 'JSON.stringify(l.result.artifacts)')" '[]'

# ---- links ----
id=$(json l.run <"$T/one.out")
get() { curl -sS --unix-socket "$T/sock" "$@"; }
link=$(get "http://x/v1/runs/$id/artifacts/out/n.txt?link=1" | json l.url)
is 'a link needs no other right' "$(curl -sS "$link" | sha256sum)" "$(seq 1000 | sha256sum)"
is 'and is for that alone' "$(curl -sS -o /dev/null -w '%{http_code}' "${link/n.txt/page.html}")" 403
is 'nor for longer' "$(curl -sS -o /dev/null -w '%{http_code}' "${link/Expires=3600/Expires=7200}")" 403
odd=$(get "http://x/v1/runs/$id/artifacts/out/a%20b/100%25%C3%A9%2B%3F%23%26%3D%0A%3B%22?link=1" | json l.url)
is 'one to a hostile name' "$(curl -sS "$odd")" odd
is 'of one that is not there' "$(get -o /dev/null -w '%{http_code}' "http://x/v1/runs/$id/artifacts/out/none?link=1")" 404

# ---- in parts ----
id=$(abctl run large -s u/large -p x --json | json l.run)
ok 'a large one' wait_for 20 are 'done'
is 'goes in parts' "$(asked 'e.filter(x=>["create","part","complete"].includes(x.op)).map(x=>x.op).join()')" 'create,part,part,part,complete'
is 'and is the same' "$(held '(x=>x.bytes+" "+(x.meta===x.sha256))(e.find(x=>x.key.endsWith("large.bin")))')" '11000000 true'

# ---- a bucket that fails ----
fault() { # HARNESS MODE...
	local harness=$1
	shift
	bucket_mode "$@"
	id=$(abctl run "$harness" -s "u/$harness" -p x --json | json l.run)
	ok "$*: it is uploaded in the end" wait_for 20 are 'done'
	is "$*: after that" "$(asked "e.filter(x=>x.outcome===\"$1\").length")" "$2"
}
fault small 500 2 put
fault small 503 2 put
fault small 429 1 put
fault small early 1 put
fault small cut 2 put
fault small hang 1 put
fault small 403 1 put
fault large 500 2 part
fault large cut 1 part
fault large untagged 1 part
fault large torn 1 create
fault large late 1 complete
is 'an error behind a status of 200 is one' "$(asked 'e.filter(x=>x.op==="complete").length')" 2
fault large torn 1 complete
is 'nothing of what failed stays' "$(cat "$K/parts")" 1 # the one whose id was torn
bucket_mode later 1 put
id=$(abctl run small -s u/small -p x --json | json l.run)
ok 'one that is asked to come later' wait_for 10 are 'done'
is 'waits so long' "$(asked 'e[1].at-e[0].at>=0.9')" true
bucket_mode 400
id=$(abctl run small -s u/small -p x --json | json l.run)
is 'one that is refused does not hurt its run' "$(abctl show "$id" --json | json l.status)" succeeded
ok 'but has failed' wait_for 10 are failed
is 'and says why' "$(abctl artifacts "$id" --json | json 'l.artifacts[0].upload.error')" 'InvalidArgument: as told (status 400)'
like 'abctl shows it' "$(abctl artifacts "$id")" 'failed +InvalidArgument'
ses2=$(abctl show "$id" --json | json l.sessionId)
ok 'as does the event' wait_for 5 sh -c "curl -sS --unix-socket $T/sock 'http://x/v1/sessions/$ses2/events?follow=0' -H 'Accept: application/x-ndjson' | grep -q '\"runId\":\"$id\",\"uploaded\":0,\"failed\":1,\"bytes\":0,\"error\":\"InvalidArgument'"
is 'there is no link to it' "$(get "http://x/v1/runs/$id/artifacts/out/x?link=1" | json l.detail)" "'out/x' is not in the bucket: its upload is failed"
is 'but it is here' "$(abctl artifacts "$id" get out/x)" x
like 'counted' "$(abctl metrics)" '^agentbox_upload_failed_total 1$'
bucket_mode ''

bucket_stop
id=$(abctl run small -s u/away -p x --json | json l.run)
ok 'a bucket that is away is told of' wait_for 10 sh -c "$BIN/abctl --socket $T/sock artifacts $id | grep -qi 'pending.*refused\|pending.*connect'"
like 'and what waits for it' "$(abctl metrics)" '^agentbox_upload_pending 1$'
bucket
ok 'when it is back all goes on' wait_for 10 are 'done'
like 'nothing waits' "$(abctl metrics)" '^agentbox_upload_pending 0$'
bucket_mode slow
id=$(abctl run small -s u/quick -p x --json | json l.run)
wait_for 10 test -s "$K/log" || true
ses=$(abctl show "$id" --json | json l.sessionId)
ok 'a session that goes while it is uploaded' abctl session rm "$ses"
bucket_mode ''
gone() { ! grep -q "$id" "$K/index" && abctl metrics | grep -q '^agentbox_upload_deleted_total [1-9]'; }
ok 'leaves nothing there' wait_for 10 gone

# ---- deaths ----
death() { # NAME COMMAND...
	local name=$1
	shift
	bucket_mode slow
	id=$(abctl run makes -s "u/$name" -p x --json | json l.run)
	wait_for 10 test -s "$K/log"
	"$@"
	ok "$name: all are there" wait_for 30 are 'done'
	bucket_mode ''
	is "$name: as they were" "$(held "e.filter(x=>x.key.includes('$id')&&x.meta===x.sha256).length")" 4
	ses=$(abctl show "$id" --json | json l.sessionId)
	ok "$name: told once" wait_for 5 sh -c "test \"\$(curl -sS --unix-socket $T/sock 'http://x/v1/sessions/$ses/events?follow=0' -H 'Accept: application/x-ndjson' | grep -c artifacts.uploaded)\" = 1"
}
again() { stop_daemon "$1"; bucket_daemon; }
death egress kill_child agentbox-egress
death supervisor kill_child agentbox-supervisor
death agentboxd again KILL

# ---- what is deleted here is deleted there ----
before=$(held 'e.length')
bucket_mode 503 2 delete
ok 'a session goes' abctl session rm "$ses"
ok 'and with it what is in the bucket, though that fails at first' wait_for 20 sh -c "test \$(wc -l <$K/index) = $((before - 4))"
bucket_mode ''

# ---- not kept here ----
config "$quick" 'keep_local: false' 'presign_ttl: 1m'
abctl reload
id=$(abctl run makes -s u/away -p x --json | json l.run)
ok 'what is not kept here' wait_for 10 are 'done'
wait_for 5 sh -c "test \$(cat $T/state/supervisor/artifacts/$id/* | wc -c) = 0"
is 'is there alone' "$(cat "$T/state/supervisor/artifacts/$id"/* | wc -c)" 0
is 'and a download is sent there' "$(get -o /dev/null -w '%{http_code}' "http://x/v1/runs/$id/artifacts/out/n.txt")" 307
is 'where it is' "$(curl -sS "$(get -o /dev/null -w '%{redirect_url}' "http://x/v1/runs/$id/artifacts/out/n.txt")" | sha256sum)" "$(seq 1000 | sha256sum)"
like 'abctl says so' "$(abctl artifacts "$id" get out/n.txt 2>&1)" "abctl artifacts $id --links"
like 'and has the link' "$(abctl artifacts "$id" --links)" "^out/n.txt +http://127.0.0.1:$KPORT/results/of/agentbox/.*X-Amz-Signature="

# ---- root's mistakes ----
SECRET=wrong
again TERM
bucket_mode ''
id=$(abctl run small -s u/wrong -p x --json | json l.run)
said() { abctl artifacts "$id" --json | grep -q "$1"; }
ok 'a wrong secret is told' wait_for 10 said SignatureDoesNotMatch
is 'and tried again, since root can mend it' "$(uploads)" 'out/x pending'
SECRET=se/cret+Key
again TERM
ok 'as here' wait_for 10 are 'done'
config 'retry: {first: 20ms, most: 50ms, give_up: 300ms}'
abctl reload
bucket_mode 500
id2=$(abctl run small -s u/late -p x --json | json l.run)
ok 'what never succeeds has failed some day' wait_for 10 are failed "$id2"
is 'by its latest error' "$(abctl artifacts "$id2" --json | json 'l.artifacts[0].upload.error')" 'InternalError: as told (status 500)'
bucket_mode ''
config "$quick"
sed -i 's/store: s3/store: local/' "$T/etc/agentboxd.yaml"
abctl reload
id2=$(abctl run small -s u/local -p x --json | json l.run)
is 'without a bucket nothing is uploaded' "$(uploads "$id2")" 'out/x undefined'
like 'and what was there has no link' "$(get "http://x/v1/runs/$id/artifacts/out/x?link=1" | json l.detail)" 'does not name any more'
config 'retry: {first: 5m, most: 1s}'
like 'a configuration that cannot be' "$(abctl reload 2>&1)" "first. is longer than"
is 'no key is in the log, an event or a record' "$(cat "$T/log" "$T"/state/supervisor/events/* "$T"/state/supervisor/db* | grep -ac 'se/cret+Key')" 0
finish
