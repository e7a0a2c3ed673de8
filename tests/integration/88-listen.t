#!/usr/bin/env bash
# The API over TCP: with a key alone, beyond loopback only with TLS, through a process of its own
# that holds the certificate's key and nothing else.
. tests/integration/lib.sh
. tests/integration/runs.sh
command -v openssl >/dev/null || skip_all 'needs openssl'

script echoes 'read -r m; echo "said $m"; mkdir -p out; echo kept >out/f' 'artifacts: [out/**]'
script waits 'echo on; while :; do sleep 0.1; done' 'limits: { timeoutMs: 60000 }'
P=$(free_port)
S=$(free_port)
certificate one
certificate two
config() { # CERT
	printf '%s\n' 'listen:' "- { address: '127.0.0.1:$P' }" \
		"- { address: '127.0.0.1:$S', auth: keys, tls: { cert: '$T/$1.pem', key: '$T/$1.pem.key' } }" >"$T/etc/agentboxd.yaml"
}
refused() { # DESCRIPTION REGEX LINE...: agentboxd does not start with it
	local what=$1 regex=$2
	shift 2
	printf '%s\n' "$@" >"$T/etc/bad.yaml"
	timeout 60 "$BIN/agentboxd" --state "$T/bad" --socket "$T/bad.sock" --config "$T/etc/bad.yaml" >"$T/bad.out" 2>&1
	like "$what" "$? $(cat "$T/bad.out")" "$regex"
}

# what root may not say
refused 'beyond loopback without TLS' '^111 .*0.0.0.0:7777 is reached by others than this host' 'listen: [{ address: "0.0.0.0:7777" }]'
refused 'IPv6, too' '\[::\]:7777 is reached by others' 'listen: [{ address: "[::]:7777", auth: keys }]'
refused 'without keys' "auth 'none': over TCP the kernel does not say who asks" 'listen: [{ address: "127.0.0.1:7777", auth: none }]'
refused 'a name' 'is no address and port' 'listen: [{ address: "localhost:7777" }]'
refused 'TLS without a key' "'?key'? is missing|needs 'key'|key" "listen: [{ address: '0.0.0.0:7777', tls: { cert: '$T/one.pem' } }]"
chmod 644 "$T/one.pem.key"
refused 'a key that others can read' "one.pem.key may be read by others .mode 0644.: chmod go= it" \
	"listen: [{ address: '127.0.0.1:$S', tls: { cert: '$T/one.pem', key: '$T/one.pem.key' } }]"
chmod 600 "$T/one.pem.key"

config one
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
abctl key add acme >"$T/acme.key" 2>/dev/null
ok 'both are served' wait_for 10 curl -sSf "http://127.0.0.1:$P/healthz"
tls() { "$BIN/abctl" --url "https://127.0.0.1:$S" --cacert "$T/one.pem" --key-file "$T/acme.key" "$@"; }
plain() { "$BIN/abctl" --url "http://127.0.0.1:$P" --key-file "$T/acme.key" "$@"; }

# who it is
L=$(child_pid agentbox-listener)
is 'a process of its own id' "$(ps -o uid= -p "$L" | tr -d ' ')" 536805384
is 'without a capability, with a filter' "$(grep -cE '^(Cap(Eff|Prm|Bnd)):.0000000000000000$|^Seccomp:.2$' "/proc/$L/status")" 4
is 'it links neither parsers nor clients' "$(ldd "$BIN/agentbox-listener" | grep -cE 'curl|cares|yaml|sqlite|uring|seccomp|nl-')" 0
is 'the private key is in no other' "$(for p in $(pgrep -P "$DAEMON"); do ls -l "/proc/$p/fd"; done | grep -c 'memfd:pem')" 0

# who may ask
code() { curl -sS -o "$T/body" -w '%{http_code}' "$@"; }
is 'nobody without a key' "$(code "http://127.0.0.1:$P/v1/runs")" 401
like 'which is said' "$(cat "$T/body")" 'Authorization: Bearer KEY'
is 'nor with another header' "$(code -H 'Authorization: Basic cm9vdDo=' "http://127.0.0.1:$P/v1/runs")" 401
is 'nor over TLS' "$(code --cacert "$T/one.pem" "https://127.0.0.1:$S/v1/runs")" 401
is 'strangers learn no path' "$(code "http://127.0.0.1:$P/v1/version") $(grep -c agents "$T/body")" '200 0'
is 'no name of a session in Host helps' "$(code -H 'Host: 3000--ses-00000000000000000000000000.localhost' "http://127.0.0.1:$P/")" 403
like 'root is not root here' "$(plain reload 2>&1)" 'a key may not POST /v1/reload'
is 'plain text on the TLS port' "$(code "http://127.0.0.1:$S/healthz" 2>/dev/null)" 000
like 'whom abctl does not trust' "$("$BIN/abctl" --url "https://127.0.0.1:$S" --cacert "$T/two.pem" --key-file "$T/acme.key" runs 2>&1)" 'its certificate is not trusted'
like 'the name counts' "$("$BIN/abctl" --url "https://localhost:$S" --cacert "$T/one.pem" --key-file "$T/acme.key" runs 2>&1)" 'hostname mismatch|not trusted'
like 'a key is not sent in the clear' "$("$BIN/abctl" --url http://example.com:80 --key-file "$T/acme.key" runs 2>&1)" 'plain http would show the key'

# what it does
like 'a run over TLS' "$(tls run echoes -s ana/one -p hello --json | tail -n 1)" '"status":"succeeded"'
like 'and without' "$(plain run echoes -s ana/one -p hello --json | tail -n 1)" '"status":"succeeded"'
head -c 3000000 /dev/urandom >"$T/large"
is 'megabytes both ways, to their ends' "$(tls exec "$(tls sessions --json | json 'l.sessions[0].sessionId')" -- cat <"$T/large" 2>/dev/null | sha256sum)" "$(sha256sum <"$T/large")"
tls exec "$(tls sessions --json | json 'l.sessions[0].sessionId')" -- sh -c 'exit 7' 2>/dev/null
is 'exit codes' "$?" 7
curl -sS --cacert "$T/one.pem" -o /dev/null -w '%{http_version}\n%{http_code}\n' -H "Authorization: Bearer $(cat "$T/acme.key")" \
	"https://127.0.0.1:$S/v1/runs" --next --cacert "$T/one.pem" -o /dev/null -w '%{num_connects}\n' -H "Authorization: Bearer $(cat "$T/acme.key")" "https://127.0.0.1:$S/v1/stats" >"$T/two"
is 'one connection for several requests' "$(tr '\n' ' ' <"$T/two")" '1.1 200 0 '

# what becomes of it
run=$(tls run waits -s ana/two -p x --detach)
tls logs "$run" -f >"$T/follow" 2>&1 &
follow=$!
ok 'a stream' wait_for 10 grep -q on "$T/follow"
is 'what is not told is left out' "$(tls version | cut -d' ' -f1 | tr '\n' ' ')" 'abctl agentbox-supervisor '
kill_child agentbox-listener >/dev/null
ok 'another listener when it is killed' wait_for 10 tls version
kill_child agentbox-supervisor >/dev/null
ok 'the same with the supervisor' wait_for 10 tls version
is 'whose run goes on' "$(tls show "$run" --json | json 'l.status')" running
kill -0 $follow
is 'and whose client follows on' "$?" 0
abctl key rm acme >/dev/null
wait $follow
isnt=$?
ok 'until its key is revoked' [ "$isnt" != 0 ]
is 'then nothing' "$(code -H "Authorization: Bearer $(cat "$T/acme.key")" "http://127.0.0.1:$P/v1/runs")" 401
abctl cancel "$run" --now >/dev/null

# a reload
serial() { openssl s_client -connect "127.0.0.1:$S" </dev/null 2>/dev/null | openssl x509 -noout -subject; }
like 'the certificate' "$(serial)" 'one'
config two
abctl reload >/dev/null
ok 'a reload takes another' wait_for 10 sh -c "openssl s_client -connect 127.0.0.1:$S </dev/null 2>/dev/null | openssl x509 -noout -subject | grep -q two"
chmod 644 "$T/two.pem.key"
like 'one that others can read is refused' "$(abctl reload 2>&1)" 'two.pem.key may be read by others'
like 'and what is in use stays' "$(serial)" 'two'
chmod 600 "$T/two.pem.key"
printf '%s\n' 'listen:' "- { address: '127.0.0.1:$P' }" >"$T/etc/agentboxd.yaml"
abctl reload >/dev/null
is 'an address that is taken away' "$(wait_for 10 sh -c "! curl -sk https://127.0.0.1:$S/healthz"; code -k "https://127.0.0.1:$S/healthz" 2>/dev/null)" 000
is 'the other stays' "$(code "http://127.0.0.1:$P/healthz")" 200
: >"$T/etc/agentboxd.yaml"
abctl reload >/dev/null
is 'none is left' "$(child_pid agentbox-listener)" ''
finish
