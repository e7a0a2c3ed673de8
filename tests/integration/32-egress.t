#!/usr/bin/env bash
# What a jail may reach and what not, from its programs to the servers outside, by the daemon as it is
# installed; the resolver outside counts.
. tests/integration/network.sh
. tests/integration/lib.sh

internet good.example www.cdn.example '*.cdn.example' closed.example || { echo 'not ok 1 - an internet'; echo 1..1; exit 1; }
mkdir -p "$T/etc/policy" "$T/etc/harnesses" "$NET/srv/good.example" "$NET/srv/www.cdn.example"
echo 'hello from good' >"$NET/srv/good.example/x"
echo 'hello from cdn' >"$NET/srv/www.cdn.example/x"
cat >"$T/etc/policy/web.yaml" <<'Y'
egress:
  allow:
    - good.example
    - "good.example:80"
    - "*.cdn.example"
    - mixed.example
    - rebound.example
    - inside.example
    - { host: good.example, protocol: raw, ports: [7] }
    - { addresses: [198.41.7.7], protocol: raw, ports: [7] }
    - { host: api.example, protocol: http, ports: [80], requests: ["GET /v1/**", "POST /v1/send"] }
Y
# names that lead inwards, each in another way
inward=(127.0.0.1 10.1.2.3 192.168.1.1 172.16.0.1 169.254.169.254 100.64.0.1 100.100.100.200 0.0.0.0 198.18.0.1
	224.0.0.1 255.255.255.255 ::1 :: fd00:ec2::254 fe80::1 ff02::1 ::ffff:10.1.2.3 64:ff9b::a01:203 64:ff9b:1::1
	2002:a01:203::1 2001:db8::1)
for i in "${!inward[@]}"; do
	echo "    - in$i.example" >>"$T/etc/policy/web.yaml"
	echo "in$i.example ${inward[i]}" >>"$NET/names"
done
cat >>"$T/etc/policy/web.yaml" <<'Y'
    - "good.example:8443"
  inject:
    - { host: broken.agentbox, upstream: "https://good.example:80" }
Y
cat >>"$NET/names" <<Y
mixed.example $OUTSIDE,10.1.2.3
rebound.example $OUTSIDE>127.0.0.1
inside.example 198.41.0.1
Y
cat >"$T/etc/harnesses/late.md" <<'Y'
---
backend: exec
policy: web
command: [sh, -c, 'a=$(getent hosts good.example | cut -d" " -f1); touch up; while [ ! -e go ]; do sleep 0.2; done; echo "answered $(printf hi | timeout 20 socat - tcp:$a:7)"']
---
Y
: >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo 'not ok 1 - start'; echo 1..1; exit 1; }

# in_jail COMMAND: its output, both streams, and its code
in_jail() { abctl jail --policy web -- sh -c "exec 2>&1
$1
echo \"exit \$?\"" 2>/dev/null; }

like 'a name by TLS, its certificate checked inside' "$(in_jail 'curl -sS -m 20 https://good.example/x')" 'hello from good'
like 'by HTTP' "$(in_jail 'curl -sS -m 20 http://good.example/x')" 'hello from good'
like 'a name below a suffix' "$(in_jail 'curl -sS -m 20 https://www.cdn.example/x')" 'hello from cdn'
like 'the bare suffix is no name' "$(in_jail 'curl -sS -m 20 https://cdn.example/x')" 'Could not resolve'
like 'raw bytes' "$(in_jail 'printf hi | timeout 20 socat - tcp:good.example:7')" '^hi'
like 'a number that a rule names' "$(in_jail 'printf hi | timeout 20 socat - tcp:198.41.7.7:7')" '^hi'
is 'and not its neighbour' "$(in_jail 'printf hi | timeout 20 socat - tcp:198.41.7.8:7 | wc -c')" "$(printf '0\nexit 0')"
is 'no variable says proxy' "$(in_jail 'env | grep -ic proxy')" "$(printf '0\nexit 1')"

: >"$NET/log"
like 'another name' "$(in_jail 'curl -sS -m 20 https://evil.example/')" 'Could not resolve host: evil.example'
like 'whichever resolver is asked' "$(in_jail 'for s in 8.8.8.8 127.0.0.53 10.200.1.1; do python3 -c "
import socket,sys
s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.settimeout(9); s.connect((sys.argv[1],53))
s.send(b\"\\0\\7\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\4evil\\7example\\0\\0\\1\\0\\1\"); print(\"rcode\",s.recv(512)[3]&15)" $s; done' | tr '\n' ' ')" 'rcode 5 rcode 5 rcode 5'
in_jail 'for i in $(seq 200); do getent hosts $i-0123456789abcdef0123456789abcdef.cdn.example; done' >/dev/null
is 'names are looked up outside when something connects, not before' "$(grep -c '^dns' "$NET/log")" 0

like 'metadata services' "$(in_jail 'for a in 169.254.169.254 100.100.100.200 168.63.129.16; do curl -sS -m 20 http://$a/; done')" 'not in policy'
like 'the way to them by a redirect' "$(in_jail 'curl -sSL -m 20 http://good.example/redirect')" '169.254.169.254 not in policy'
like 'a name with a private address among others' "$(in_jail 'curl -sS -m 20 https://mixed.example/')" 'reset|SSL_ERROR|unexpected eof|Connection'
is 'is not dialled at all' "$(asked mixed.example)" 0
in_jail 'curl -sS -m 20 https://rebound.example/x; sleep 0.2; curl -sS -m 20 https://rebound.example/x' >"$T/out"
is 'a name that changes to a private address: each connection is judged' "$(queries rebound.example)" 2
is 'and the second does not get there' "$(asked rebound.example)" 0
like 'an address of this host, public as it is' "$(in_jail 'curl -sS -m 20 https://inside.example/')" 'reset|SSL_ERROR|unexpected eof|Connection'
in_jail "for i in $(seq -s ' ' 0 $((${#inward[@]} - 1))); do curl -sS -m 20 https://in\$i.example/x; done" >"$T/out"
is 'names that lead inwards, in each way an address can: none gets there' \
	"$(grep -cE 'reset|SSL_ERROR|unexpected eof|Connection' "$T/out") $(grep -c '^http in' "$NET/log")" "${#inward[@]} 0"
for i in "${!inward[@]}"; do
	grep -qE "egress denied: in$i.example:443.*${inward[i]#::ffff:}.*not public" "$T/log" || echo "${inward[i]}"
done >"$T/untold"
is 'which is told, with the address' "$(cat "$T/untold")" ''
like 'an upstream that speaks no TLS' "$(in_jail 'curl -sS -m 20 -w " %{http_code}" http://broken.agentbox/')" '"http: upstream good.example: .*" ?[}]+ 502'
like 'a hello with ECH of nobody, in pieces, gets there' "$(in_jail 'python3 - <<E
import os,socket,ssl,time
out=ssl.MemoryBIO()
try: ssl.create_default_context().wrap_bio(ssl.MemoryBIO(),out,server_hostname="good.example").do_handshake()
except ssl.SSLWantReadError: pass
h=bytearray(out.read())
ech=os.urandom(32)
ech=b"\0\0\1\0\1\7\0\x20"+ech+b"\0\x90"+os.urandom(144)
ech=b"\xfe\x0d"+len(ech).to_bytes(2,"big")+ech
at=44+h[43]; at+=2+int.from_bytes(h[at:at+2],"big"); at+=1+h[at]
for where,size in ((3,2),(6,3),(at,2)): h[where:where+size]=(int.from_bytes(h[where:where+size],"big")+len(ech)).to_bytes(size,"big")
h+=ech
s=socket.create_connection(("good.example",443),9)
for piece in (h[:3],h[3:50],h[50:200],h[200:]): s.sendall(piece); time.sleep(0.1)
print("answered by", s.recv(1))
E')" "answered by b'.x16'"
like 'no port of the policy can be taken' "$(in_jail 'python3 - <<E
import errno,socket
bound=[]
for port in (53,80,443,8443):
    for address in ("0.0.0.0","127.0.0.1",socket.gethostbyname("good.example"),"::"):
        s=socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        s.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1)
        s.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEPORT,1)
        try: s.bind((address,port)); s.listen(); bound.append((address,port))
        except OSError as e: assert e.errno in (errno.EACCES,errno.EADDRINUSE), e
print("taken:", bound)
E')" 'taken: \[\]'
like 'another server name than the one dialled' "$(in_jail 'curl -sS -m 20 --connect-to good.example:443:www.cdn.example:443 https://good.example/x')" 'reset|SSL_ERROR|unexpected eof'
like 'another Host' "$(in_jail 'curl -sS -m 20 -H "Host: www.cdn.example" http://good.example/x')" 'does not belong'
like 'a request that is allowed' "$(in_jail 'curl -sS -m 20 -o /dev/null -w %{http_code} http://api.example/v1/a/b')" '^404'
like 'one that is not' "$(in_jail 'curl -sS -m 20 http://api.example/v2/x')" 'not among the requests'
like 'nor by another method' "$(in_jail 'curl -sS -m 20 -X DELETE http://api.example/v1/x')" 'not among the requests'

like 'refused at once' "$(in_jail 'python3 - <<E
import socket,time
worst=0
for port in (443,80,8080,22,25,6379):
    t=time.monotonic()
    try:
        s=socket.create_connection(("8.8.8.8",port),9); s.sendall(b"GET / HTTP/1.1\r\nHost: x.y\r\n\r\n"); s.recv(100)
    except OSError: pass
    worst=max(worst,time.monotonic()-t)
t=time.monotonic()
try: socket.getaddrinfo("evil.example",443)
except OSError: pass
print("fast" if max(worst,time.monotonic()-t)<2 else "slow %.3f" % worst)
E')" fast

# The process that relays is killed while it does: jails stay, new connections work.
abctl jail --policy web -- sh -c 'curl -sS -m 60 http://good.example/slow >/tmp/a 2>/tmp/b; echo "cut $?"; for i in 1 2 3 4 5 6 7 8 9 10; do curl -sS -m 9 https://good.example/x && exit; sleep 0.3; done' >"$T/out" 2>&1 &
slow=$!
wait_for 20 sh -c "[ \"\$(grep -c 'http good.example GET /slow' '$NET/log')\" != 0 ]"
pkill -KILL -P "$DAEMON" agentbox-egress
wait $slow
like 'a transfer is cut when the relay is killed' "$(cat "$T/out")" '^cut (18|52|56)'
like 'and the same jail goes on with the next' "$(cat "$T/out")" 'hello from good'
# A new agentboxd and a new relay under a living jail, and its listeners with it.
built=$BIN
mkdir "$T/bin" "$T/share"
ln -s "$PWD/harnesses" "$T/share/harnesses"
cp "$built"/agentboxd "$built"/agentbox-* "$built"/abctl "$T/bin/"
stop_daemon
BIN=$T/bin
start_daemon --config "$T/etc/agentboxd.yaml" --share "$T/share" || { echo 'not ok - start again'; exit 1; }
BIN=$built
# A run: commands of clients end with the supervisor, which is replaced with the rest.
renewed_under_a_run "$built"
like 'the listeners of a living jail go on to them' "$(cat "$T/out")" 'answered hi'
is 'nothing went wrong on the way' "$(grep ' error: ' "$T/log" | grep -vc 'ended with signal 9')" 0
finish
