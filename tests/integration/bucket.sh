# shellcheck shell=bash
# An S3 server in a test, and the configuration that names it: sourced after runs.sh.

K=$T/bucket
BUCKET=''
mkdir -p "$K" "$T/libexec"
cp "$BIN"/agentbox-* "$T/libexec/"
: >"$K/mode"
: >"$K/log"
KPORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')

bucket() { # it listens
	python3 tests/integration/bucket.py "$KPORT" "$K" 2>>"$T/bucket.err" &
	BUCKET=$!
	wait_for 20 bash -c "exec 3<>/dev/tcp/127.0.0.1/$KPORT"
}
bucket_stop() {
	[ -z "$BUCKET" ] || kill -9 "$BUCKET" 2>/dev/null
	wait "$BUCKET" 2>/dev/null
	BUCKET=''
}
trap 'bucket_stop; _at_exit' EXIT
bucket_mode() { # KIND [TIMES [OPERATION]]
	echo "$*" >"$K/mode"
	: >"$K/log"
}
# bucket_config LINE...: of artifacts.s3
bucket_config() {
	{
		printf '%s\n' 'artifacts:' '  store: s3' '  s3:' "    endpoint: 'http://127.0.0.1:$KPORT'" '    bucket: results' \
			'    region: eu-test-1' '    access_key: S3_ACCESS' '    secret_key: S3_SECRET' \
			'    path_style: true' '    addresses: [127.0.0.1]'
		printf '    %s\n' "$@"
	} >"$T/etc/agentboxd.yaml"
}
SECRET=se/cret+Key
bucket_daemon() {
	S3_ACCESS=AKIATESTKEY S3_SECRET=$SECRET start_daemon --libexec "$T/libexec" --config "$T/etc/agentboxd.yaml" "$@"
}
# What the run's artifacts say of themselves: "path status" each.
uploads() { abctl artifacts "${1:-$id}" --json | json 'l.artifacts.map(x=>x.path+" "+(x.upload||{}).status).join()'; }
# All of them are.
are() {
	abctl artifacts "${2:-$id}" --json >"$T/list" && grep -q '"status"' "$T/list" && ! grep -o '"status":"[a-z]*"' "$T/list" | grep -qv "$1"
}
# held EXPRESSION: of the objects (e) in the bucket; asked EXPRESSION: of the requests so far (e)
held() { [ -s "$K/index" ] && json "$1" <"$K/index" || echo 0; }
asked() { [ -s "$K/log" ] && json "$1" <"$K/log" || echo none; }
