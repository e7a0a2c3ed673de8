#!/usr/bin/env bash
# agentbox-egress is killed while many jails use it: what was open is reset, what is new works again
# within a second, in every jail, by each kind of rule.
. tests/integration/network.sh
. tests/integration/lib.sh

JAILS=4
internet good.example || { echo 'not ok 1 - an internet'; echo 1..1; exit 1; }
mkdir -p "$T/etc/policy" "$T/etc/harnesses" "$NET/srv/good.example"
echo 'hello from good' >"$NET/srv/good.example/x"
cat >"$T/etc/policy/web.yaml" <<'Y'
egress:
  allow:
    - good.example
    - "good.example:80"
    - { host: good.example, protocol: raw, ports: [7] }
Y
# Threads of one jail ask without end, each in its way, and write down what came of it, when.
cat >"$T/etc/harnesses/load.md" <<'Y'
---
backend: exec
policy: web
command: [python3, -]
---
Y
cat >"$T/load.py" <<'P'
import errno, os, socket, ssl, threading, time
address = socket.gethostbyname("good.example")
tls = ssl.create_default_context()
def read(s):
    got = b""
    while b"hello" not in got:
        more = s.recv(4096)
        if not more:
            raise ConnectionResetError(errno.ECONNRESET, "end")
        got += more
def http(s):
    s.sendall(b"GET /x HTTP/1.1\r\nHost: good.example\r\n\r\n")
    read(s)
def raw(s):
    s.sendall(b"hello")
    read(s)
log, lock = open("log", "w"), threading.Lock()
def one(name, port, ask):
    start, s = time.time(), None
    try:
        s = socket.create_connection((address, port), 30)
        if port == 443:
            s = tls.wrap_socket(s, server_hostname="good.example")
        for i in range(5):
            ask(s)
        what = "ok"
    except OSError as e:
        reset = isinstance(e, (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError))
        what = "reset" if reset else "%s %s" % (type(e).__name__, e)
    finally:
        if s:
            s.close()
    with lock:
        log.write("%s %.6f %.6f %s\n" % (name, start, time.time(), what))
        log.flush()
def loop(*args):
    while not os.path.exists("stop"):
        one(*args)
        time.sleep(0.05)
threads = [threading.Thread(target=loop, args=a) for a in (("http", 80, http), ("tls", 443, http), ("raw", 7, raw)) * 2]
for t in threads: t.start()
for t in threads: t.join()
P
: >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo 'not ok 1 - start'; echo 1..1; exit 1; }
for i in $(seq "$JAILS"); do
	abctl run load -s "u/$i" -p "$(cat "$T/load.py")" --json >"$T/run.$i" 2>/dev/null &
	runs="${runs:-} $!"
done
at_work() {
	local i
	for i in $(seq "$JAILS"); do abctl exec "u/$i" -- sh -c 'for k in http tls raw; do grep -q "^$k .* ok" log || exit 1; done' || return 1; done
}
ok 'jails with load' wait_for 60 at_work
egress() { child_pid '^agentbox-egress'; }
kills=''
for _ in 1 2 3; do
	old=$(egress)
	kills="$kills $(date +%s.%N)"
	kill -9 "$old"
	ok 'egress is killed, and another comes' wait_for 20 sh -c "p=\$(pgrep -P $DAEMON -f '^agentbox-egress' | head -n 1) && test \$p != $old"
	sleep 3
done
for i in $(seq "$JAILS"); do abctl exec "u/$i" -- sh -c 'touch stop; cat log' >"$T/log.$i" 2>/dev/null; done
# shellcheck disable=SC2086 # a list
wait $runs
is 'every run has gone on to its end' "$(for i in $(seq "$JAILS"); do json 'l.result.status' <"$T/run.$i"; done | sort -u)" succeeded
# The longest that a connection takes at this load, undisturbed.  For each kill the time until each jail has a connection of each kind that was begun after it, and
# that what failed was reset, at a kill: the second and third restart wait 100 and 200 ms.
cat >"$T/judge.py" <<'P'
import sys
kills = [float(k) for k in sys.argv[1].split()]
worst, other, failed, usual = [0.0] * len(kills), [], 0, 0.0
for name in sys.argv[2:]:
    rows = [(k, float(a), float(b), w.strip()) for k, a, b, w in (l.split(" ", 3) for l in open(name) if l.count(" ") > 2)]
    usual = max([usual] + [b - a for k, a, b, w in rows if b < kills[0]])
    for n, at in enumerate(kills):
        for kind in ("http", "tls", "raw"):
            first = min((b for k, a, b, w in rows if k == kind and a > at and w == "ok"), default=at + 99)
            worst[n] = max(worst[n], first - at)
    for k, a, b, w in rows:
        failed += w != "ok"
        if w not in ("ok", "reset") or (w == "reset" and not any(a - 1 <= at <= b for at in kills)):
            other.append("%s %.3f %s" % (k, b - kills[0], w))
print("worst", *("%d" % (w * 1000) for w in worst))
print("best", int(min(worst) * 1000))
print("usual", int(usual * 1000))
print("cut", failed)
print("otherwise", *other[:5])
P
python3 "$T/judge.py" "$kills" "$T"/log.[0-9]* >"$T/judged" 2>&1
sed 's/^/# /' "$T/judged"
judged() { awk -v k="$1" '$1 == k { print $2 }' "$T/judged"; }
best=$(judged best)
usual=$(judged usual)
ok "new connections work in every jail, by each kind of rule, within a second and what one takes at this load ($best ms, $usual)" \
	test "${best:-99999}" -lt $((1000 + ${usual:-0}))
is 'what was open is reset; nothing fails otherwise' "$(grep '^otherwise' "$T/judged")" otherwise
finish
