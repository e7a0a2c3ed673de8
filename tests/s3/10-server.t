#!/usr/bin/env bash
# Artifacts in a server of S3 that others have written, from npm: it checks every signature, also those
# of links, and puts parts together by its own rules.
. tests/integration/lib.sh
. tests/integration/runs.sh
. tests/integration/bucket.sh

[ -d "${S3_SERVER:?make test-s3 says where it is}/node_modules/s3rver" ] || skip_all 'there is no S3 server from npm'
# shellcheck disable=SC2016 # it is the jail's shell that expands it
script makes 'mkdir -p "out/a b"; seq 1000 >out/n.txt; : >out/empty; echo odd >"out/a b/100%+?#&=;é.txt"' 'artifacts: [out/**]'
script large 'mkdir out; seq 2000000 >out/large.txt' 'artifacts: [out/**]'
serve() {
	NODE_PATH=$S3_SERVER/node_modules node tests/s3/server.js "$KPORT" "$K/data" >>"$T/bucket.out" 2>&1 &
	BUCKET=$!
	wait_for 30 bash -c "exec 3<>/dev/tcp/127.0.0.1/$KPORT"
}
config() {
	bucket_config 'prefix: agentbox' 'part_size: 5M' 'presign_ttl: 1m' 'timeout: 5s' 'retry: {first: 100ms, most: 1s, give_up: 1h}' "$@"
	sed -i 's/eu-test-1/us-east-1/' "$T/etc/agentboxd.yaml"
}
start() { S3_ACCESS=S3RVER S3_SECRET=$SECRET start_daemon --libexec "$T/libexec" --config "$T/etc/agentboxd.yaml"; }
get() { curl -sS --unix-socket "$T/sock" "$@"; }
link() { get "http://x/v1/runs/$id/artifacts/$1?link=1" | json l.url; }

config
serve || { echo "not ok 1 - no server: $(cat "$T/bucket.out")"; echo 1..1; exit 1; }
SECRET=wrong
start || { echo "not ok 1 - start"; echo 1..1; exit 1; }
id=$(abctl run makes -s u/g -p x --json | json l.run)
said() { abctl artifacts "$id" --json | grep -q "$1"; }
ok 'it checks signatures: a wrong secret is refused' wait_for 20 said SignatureDoesNotMatch
is 'and nothing is there' "$(find "$K/data/results" -type f 2>/dev/null | wc -l)" 0
stop_daemon TERM
SECRET=S3RVER
start
ok 'the right one is not' wait_for 30 are 'done'
is 'a link to one' "$(curl -sS "$(link out/n.txt)" | sha256sum)" "$(seq 1000 | sha256sum)"
is 'to an empty one' "$(curl -sS -w '%{http_code} %{size_download}' "$(link out/empty)")" '200 0'
is 'to one with a name that has to be encoded' "$(curl -sS "$(link 'out/a%20b/100%25%2B%3F%23%26%3D%3B%C3%A9.txt')")" odd
curl -sS -D "$T/head" -o /dev/null "$(link out/n.txt)"
is 'as what it is' "$(tr -d '\r' <"$T/head" | sed -n 's/^\(content-type\|content-disposition\|x-amz-meta-sha256\): //ip' | sort | paste -sd' ')" \
	"$(seq 1000 | sha256sum | cut -d' ' -f1) attachment text/plain; charset=utf-8"
is 'a link that was changed is none' "$(curl -sS -o /dev/null -w '%{http_code}' "$(link out/n.txt | sed 's/Expires=60/Expires=600/')")" 403
session=$(abctl show "$id" --json | json l.sessionId)
id=$(abctl run large -s u/large -p x --json | json l.run)
ok 'one in three parts' wait_for 60 are 'done'
is 'is put together' "$(curl -sS "$(link out/large.txt)" | sha256sum)" "$(seq 2000000 | sha256sum)"
kept() { find "$K/data/results" -type f -path "*$1*" | wc -l; }
ok 'its files are there' test "$(kept "$session")" -gt 0
ok 'a session goes' abctl session rm "$session"
gone() { [ "$(kept "$session")" = 0 ]; }
ok 'and what it has there' wait_for 30 gone
finish
