#!/usr/bin/env bash
# TLS that is terminated by name: requests of https hosts are judged, with the programs that ask for
# packages and code, and an authority that is trusted in one jail and has its key in none.
. tests/integration/network.sh
. tests/integration/lib.sh
. tests/integration/image.sh

internet good.example plain.example || { echo 'not ok 1 - an internet'; echo 1..1; exit 1; }
mkdir -p "$T/etc/policy" "$T/etc/harnesses" "$T/bin" "$T/share" "$NET/srv/good.example/open" "$NET/srv/good.example/closed" "$NET/srv/plain.example"
echo 'hello from good' >"$NET/srv/good.example/open/x"
echo 'secret of good' >"$NET/srv/good.example/closed/x"
echo 'hello from plain' >"$NET/srv/plain.example/x"
git init -q -b main "$NET/work" && git -C "$NET/work" -c user.name=t -c user.email=t@t commit -q --allow-empty -m first
for d in open closed; do git clone -q --bare "$NET/work" "$NET/srv/good.example/$d/code.git"; done
cat >"$T/etc/policy/web.yaml" <<'Y'
egress:
  allow:
    - host: good.example
      terminate: true
      requests: ["GET /open/**", "HEAD /open/**", "POST /open/*/git-upload-pack"]
    - plain.example
Y
sed 's/good.example/other.example/' "$T/etc/policy/web.yaml" >"$T/etc/policy/other.yaml"
sed '/terminate/d; /requests/d' "$T/etc/policy/web.yaml" >"$T/etc/policy/off.yaml"
cat >"$T/etc/harnesses/late.md" <<'H'
---
backend: exec
policy: web
command: [sh, -c, 'cat /etc/ssl/certs/agentbox-egress.pem >was; touch up; while [ ! -e go ]; do sleep 0.1; done; curl -sS -m 20 https://good.example/open/x; cmp was /etc/ssl/certs/agentbox-egress.pem && echo same']
---
H
# Programs of the test's own, to be replaced under a run.
built=$BIN
ln -s "$PWD/harnesses" "$T/share/harnesses"
cp "$built"/agentboxd "$built"/agentbox-* "$built"/abctl "$T/bin/"
: >"$T/etc/agentboxd.yaml"
BIN=$T/bin
start_daemon --config "$T/etc/agentboxd.yaml" --share "$T/share" || { echo 'not ok 1 - start'; echo 1..1; exit 1; }

# in_jail POLICY COMMAND: its output, both streams, and its code
in_jail() { abctl jail --policy "$1" -- sh -c "exec 2>&1
$2
echo \"exit \$?\"" 2>/dev/null; }
web() { in_jail web "unset SSL_CERT_FILE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS; $1"; }

# ---- programs, without a variable ----
like 'curl' "$(web 'curl -sS -m 20 https://good.example/open/x')" 'hello from good'
like 'another path' "$(web 'curl -sS -m 20 https://good.example/closed/x')" 'GET /closed/x is not among the requests allowed for good.example'
is 'does not get there' "$(grep -c closed "$NET/log")" 0
like 'nor by another method' "$(web 'curl -sS -m 20 -X DELETE https://good.example/open/x')" 'DELETE /open/x is not among'
like 'HTTP/2 is not spoken' "$(web 'curl -sS -m 20 -o /dev/null -w "%{http_version} %{http_code}" https://good.example/open/x')" '^1.1 200'
like 'git' "$(web 'cd /tmp && git clone -q https://good.example/open/code.git && git -C code log --format=%s')" '^first'
like 'a repository that is none of its own' "$(web 'cd /tmp && git clone -q https://good.example/closed/code.git')" 'error: 403'
python='import urllib.request, sys
try: print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())
except urllib.error.HTTPError as e: print(e.code, e.read().decode())'
like 'python' "$(web "/usr/bin/python3 -c '$python' https://good.example/open/x")" 'hello from good'
like 'python, another path' "$(web "/usr/bin/python3 -c '$python' https://good.example/closed/x")" '^403 .*not among the requests'

# ---- and with what a jail sets for those that bring their own ----
node='const https=require("https");https.get(process.argv[1],r=>{let s="";r.on("data",d=>s+=d);r.on("end",()=>console.log(r.statusCode,s))}).on("error",e=>console.log(e.message))'
like 'node' "$(in_jail web "node -e '$node' https://good.example/open/x")" '^200 hello from good'
like 'node, another path' "$(in_jail web "node -e '$node' https://good.example/closed/x")" '^403 .*not among the requests'
like 'fetch of node' "$(in_jail web "node -e 'fetch(\"https://good.example/open/x\").then(r=>r.text()).then(console.log)'")" 'hello from good'
is 'variables' "$(in_jail web 'env | grep -c /etc/ssl/certs')" "$(printf '3\nexit 0')"
is 'none where nothing is terminated' "$(in_jail off 'env | grep -c /etc/ssl/certs')" "$(printf '0\nexit 1')"

# ---- whose certificates ----
subject='openssl s_client -connect $h:443 -servername $h </dev/null 2>/dev/null | openssl x509 -noout -issuer'
like 'a terminated name has one of ours' "$(web "h=good.example; $subject")" 'agentbox egress authority'
like 'another keeps its own' "$(web "h=plain.example; $subject")" 'agentbox-test'
like 'and is reached by it' "$(web 'curl -sS -m 20 https://plain.example/x')" 'hello from plain'
like 'what is trusted besides is trusted still' "$(web 'grep -c BEGIN /etc/ssl/certs/ca-certificates.crt')" "^$(($(grep -c BEGIN /etc/ssl/certs/ca-certificates.crt) + 1))"
line() { tr '\n' ' '; }
like 'without the rule there is nothing' "$(in_jail off 'ls /etc/ssl/certs/agentbox-egress.pem; curl -sS -m 20 https://good.example/open/x' | line)" 'No such file.*hello from good'
own=$(abctl jail --policy web -- cat /etc/ssl/certs/agentbox-egress.pem 2>/dev/null)
like 'an authority for these names alone' "$(openssl x509 -noout -text <<<"$own" | grep -A9 Permitted | grep -v Signature | line)" 'Permitted: *DNS:good.example *[0-9a-f:]*:'
again=$(abctl jail --policy web -- cat /etc/ssl/certs/agentbox-egress.pem 2>/dev/null)
ok 'the next jail has another' test -n "$again" -a "$own" != "$again"
like 'and does not trust the first' "$(in_jail web "echo '$own' >/tmp/first; curl -sS -m 20 --cacert /tmp/first --capath /nonexistent https://good.example/open/x")" 'SSL certificate problem'
like 'a name that its policy does not terminate is none of its authority' "$(in_jail other "h=plain.example; $subject; curl -sS -m 20 https://good.example/open/x" | line)" 'agentbox-test.*Could not resolve'
is 'files that cannot be changed' "$(abctl jail --policy web --user root -- sh -c 'echo x >>/etc/ssl/certs/ca-certificates.crt; rm /etc/ssl/certs/agentbox-egress.pem; touch /etc/ssl/certs/x' 2>&1 | grep -c 'Read-only')" 3

# ---- the key ----
mkfifo "$T/line"
abctl jail --policy web -- sh -c 'echo up; read -r line; curl -sS -m 20 https://good.example/open/x' <"$T/line" >"$T/out" 2>/dev/null &
after=$!
exec 8>"$T/line"
wait_for 20 grep -q up "$T/out"
key() { # the private numbers of what agentboxd holds, in hexadecimal
	local fd
	for fd in /proc/"$DAEMON"/fd/*; do
		[ "$(readlink "$fd")" = '/memfd:authority (deleted)' ] || continue
		head -c 280 "$fd" | tail -c +25 | head -c 121 >"$T/key.der" 2>/dev/null
		openssl ec -inform DER -in "$T/key.der" -noout -text 2>/dev/null | sed -n '/priv:/,/pub:/p' | tr -d ' :\n' | sed 's/priv//; s/pub//'
		echo
	done
}
key >"$T/keys"
ok 'agentboxd has the keys of its jails' test "$(grep -c '^[0-9a-f]\{60,\}$' "$T/keys")" -ge 1
# Every file that could be its own, and what /proc shows of it.
in_jail web 'find /etc /run /tmp /home /workspace /opt /var -type f 2>/dev/null | xargs cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | od -An -tx1 -v | tr -d " \n"' >"$T/seen"
ok 'a look at all that a jail has' test "$(wc -c <"$T/seen")" -gt 400000
is 'none of the keys is in it' "$(grep -c -F -f <(grep . "$T/keys") "$T/seen")" 0
is 'nor on the disk' "$(find "$T/state" -type f -exec od -An -tx1 -v {} + | tr -d ' \n' | grep -c -F -f <(grep . "$T/keys"))" 0

# ---- a new egress under a living jail ----
pkill -KILL -P "$DAEMON" agentbox-egress
sleep 1
echo go >&8
exec 8>&-
wait $after
like 'another egress goes on with the same authority' "$(cat "$T/out")" 'hello from good'

# ---- a new agentboxd and a new egress under a run ----
renewed_under_a_run "$built"
like 'its authority goes on to them' "$(cat "$T/out")" 'hello from good'
like 'and is the one it was' "$(cat "$T/out")" 'same'

# ---- where inner root may change what is trusted ----
debian_image "$T/image" curl ca-certificates openssl
cat >"$T/etc/policy/pack.yaml" <<Y
extends: web
filesystem: { root: image, image: $T/image }
inner_root: packages
Y
sed -n '/^egress/,$p' "$T/etc/policy/web.yaml" >>"$T/etc/policy/pack.yaml"
sed -i 's/^extends: web/extends: default/' "$T/etc/policy/pack.yaml"
ok 'an image' abctl reload
as_root() { abctl jail --policy pack --user root -- sh -c "exec 2>&1; $1" 2>/dev/null; }
like 'in a layer over an image' "$(as_root 'curl -sS -m 20 https://good.example/open/x')" 'hello from good'
like 'its own tools keep it' "$(as_root '(cd /usr/share/ca-certificates && find . -name "*.crt" | cut -c3-) >/etc/ca-certificates.conf; update-ca-certificates --fresh >/dev/null 2>&1; grep -c BEGIN /etc/ssl/certs/ca-certificates.crt; curl -sS -m 20 https://good.example/open/x' | line)" '^[0-9][0-9]+ hello from good'
is 'the image knows nothing of it' "$(find "$T/image" -name 'agentbox-egress*' | wc -l)" 0

# ---- what is told ----
abctl jail --policy web -- curl -sS -m 20 https://good.example/closed/x >/dev/null 2>"$T/err"
like 'a refused request, with what to write' "$(cat "$T/err")" 'add the request to .requests. of good.example:443'
abctl jail --policy web -- curl -sS -m 20 --cacert /etc/ssl/certs/ISRG_Root_X1.pem --capath /nonexistent https://good.example/open/x >/dev/null 2>"$T/err"
like 'a program that brings its own certificates' "$(cat "$T/err")" 'does not trust the jail.s authority.*leave .terminate. out of rule good.example:443'
like 'explain' "$(abctl policy explain "$T/etc/policy/web.yaml" host good.example:443 | line)" 'some requests only.*terminated: opened on its way'
is 'and only there' "$(abctl policy explain "$T/etc/policy/web.yaml" host plain.example:443 | grep -c terminated)" 0
like 'a policy that is none' "$(printf 'egress: { allow: [{ host: a.b, protocol: http, terminate: true }] }\n' >"$T/bad.yaml"; abctl policy lint "$T/bad.yaml" 2>&1)" 'terminate: http has nothing to terminate'
like 'requests without it' "$(printf 'egress: { allow: [{ host: a.b, requests: [/x] }] }\n' >"$T/bad.yaml"; abctl policy lint "$T/bad.yaml" 2>&1)" 'tls does not show them without .terminate: true'
is 'nothing went wrong on the way' "$(grep ' error: ' "$T/log" | grep -vc 'ended with signal 9')" 0
finish
