#!/usr/bin/env bash
# A new binary of egress beside the old one: what is open goes on, what is new goes to the new one.
# And what egress tells of while no supervisor is there reaches the next one.
. tests/integration/lib.sh

built=$(realpath "$BIN")
mkdir -p "$T/etc/harnesses" "$T/etc/policy" "$T/bin" "$T/share"
cp "$BIN"/agentboxd "$BIN"/agentbox-* "$T/bin/"
command ln -s "$built/abctl" "$T/bin/abctl"
command ln -s "$PWD/harnesses" "$T/share/harnesses"
cat >"$T/upstream.py" <<'P'
import http.server, sys, time
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        n = int(self.path.rsplit("/", 1)[1])
        self.send_response(200)
        if n == 0:
            self.send_header("Content-Length", "3")
            self.end_headers()
            self.wfile.write(b"ok\n")
            return
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for i in range(n):
                piece = b"data: %d\n\n" % i
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
                time.sleep(0.1)
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True
    def log_message(self, *a):
        pass
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), H)
open(sys.argv[1], "w").write(str(s.server_port))
s.serve_forever()
P
python3 "$T/upstream.py" "$T/port" >/dev/null 2>&1 &
upstream=$!
trap 'kill $upstream; _at_exit' EXIT
wait_for 10 test -s "$T/port"
cat >"$T/etc/policy/out.yaml" <<Y
extends: default
egress:
  inject: [ { host: slow.agentbox, upstream: "http://127.0.0.1:$(cat "$T/port")", allow_loopback: true } ]
Y
harness() {
	local name=$1
	shift
	printf '%s\n' '---' 'backend: exec' 'policy: out' "$@" '---' >"$T/etc/harnesses/$name.md"
}
# longer than two reloads take on a busy machine
harness stream 'command: [sh, -c, "echo on; curl -sSN http://slow.agentbox/200"]'
harness endless 'command: [sh, -c, "echo on; curl -sSN http://slow.agentbox/3000; echo over"]'
harness asks 'command: [sh, -c, "echo on; i=0; while [ ! -e stop ]; do curl -sS -m 20 http://slow.agentbox/0 || echo failed; sleep 0.02; done"]'
# one connection for all of them: curl asks again where it was closed between two requests
harness keeps 'command: [sh, -c, "echo on; while [ ! -e stop ]; do curl -sS -m 20 http://slow.agentbox/[0-0] http://slow.agentbox/0 http://slow.agentbox/0 || echo failed; done"]'
# names that are refused, more than are told one by one: NAMES, by 100 a second
cat >"$T/names" <<'S'
use Socket;
socket(my $s, PF_INET, SOCK_DGRAM, 0) or die;
connect($s, sockaddr_in(53, inet_aton("198.18.0.1"))) or die;
$| = 1;
print "on\n";
while (!-e "go") { select(undef, undef, undef, 0.05) }
my ($who, $n) = @ARGV;
for my $i (1 .. $n) {
	my $name = "n$i-$who";
	send($s, pack("nnnnnn", 7, 256, 1, 0, 0, 0) . pack("C/a C/a C", $name, "example", 0) . pack("nn", 1, 1), 0);
	select(undef, undef, undef, 0.01);
}
print "asked\n";
while (!-e "stop") { select(undef, undef, undef, 0.05) }
S
harness names "command: [sh, -c, 'cat >/tmp/s; perl /tmp/s x 30']"
harness many "command: [sh, -c, 'cat >/tmp/s; perl /tmp/s x 600']"
: >"$T/etc/agentboxd.yaml"
BIN=$T/bin
start_daemon --config "$T/etc/agentboxd.yaml" --share "$T/share" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
BIN=$built
pids() { pgrep -P "$DAEMON" -f '^agentbox-egress'; }
egress() { pids | wc -l; }
one_left() { [ "$(egress)" = 1 ]; }
replace() {
	local f
	for f in "$@"; do cp "$built/$f" "$T/bin/$f.new" && mv "$T/bin/$f.new" "$T/bin/$f"; done
}
since() { abctl version --json | json 'l.daemon.agentboxd.since'; }
later() { [ "$(since)" != "$1" ]; }
# by when they began: numbers of processes start again from below
newest() { pgrep -n -P "$DAEMON" -f '^agentbox-egress'; }
oldest() { pgrep -o -P "$DAEMON" -f '^agentbox-egress'; }
other() { [ "$(newest)" != "$1" ]; }
renew() { # until there is another
	local old
	old=$(newest)
	replace agentbox-egress
	abctl reload >/dev/null && wait_for 10 other "$old"
}
begin() { # HARNESS SESSION [INPUT]
	abctl run "$1" -s "u/$2" -p "${3:-x}" --detach --json >"$T/$2.run"
	id=$(json 'l.runId||l.run' <"$T/$2.run")
	wait_for 20 sh -c "$BIN/abctl --socket $T/sock logs $id --json | grep -q agent.message"
}
ended() { abctl show "$1" --json | grep -q '"exit"'; }
text() { abctl logs "$1" --json | json 'e.filter(x=>x.type==="agent.message").map(x=>x.text).join("")'; }
errors() { abctl logs "$1" --json | json 'e.filter(x=>x.type==="agent.raw"&&x.stream==="stderr").map(x=>x.line).join()'; }
denied() { abctl logs "$1" --json | json 'e.filter(x=>x.type==="egress.denied").map(x=>x.host+" "+x.reason).join("\n")'; }

begin stream s
stream=$id
begin asks a
asks=$id
begin keeps k
keeps=$id
sleep 1
first=$(newest)
ok 'a new egress' renew
ok 'the old one is still there' kill -0 "$first"
is 'with what is open' "$(egress)" 2
replace agentboxd
old=$(since)
ok 'and over a new agentboxd' abctl reload
ok 'which has both' wait_for 20 later "$old"
is 'that were there' "$(egress) $(oldest)" "2 $first"
ok 'the stream ends' wait_for 60 ended "$stream"
is 'and is whole' "$(text "$stream" | grep -c '^data: ') $(errors "$stream")" '200 '
ok 'then the old egress ends, too' wait_for 10 one_left
like 'in order' "$(cat "$T/log")" 'egress .pid [0-9]+. ended with exit code 0'
for s in a k; do abctl exec "u/$s" -- touch stop; done
wait_for 20 ended "$asks"
wait_for 20 ended "$keeps"
ok "requests that began meanwhile were answered ($(text "$asks" | grep -c ok), $(text "$keeps" | grep -c ok))" test "$(text "$asks" | grep -c ok)" -gt 20
is 'all of them' "$(text "$asks"; text "$keeps" | grep -v ok) $(errors "$asks") $(errors "$keeps")" "$(text "$asks" | sed 's/.*failed.*//'; echo on)  "

# not for ever
hold() { # SESSION: a run whose stream has begun
	begin endless "$1"
	wait_for 20 sh -c "$BIN/abctl --socket $T/sock logs $id --json | grep -q 'data: 1'"
}
hold e
endless=$id
first=$(newest)
missed=0
for i in 1 2 3 4; do
	[ $i = 1 ] || hold "e$i"
	renew || missed=$((missed + 1))
done
is 'four more beside the first' "$missed $(egress)" '0 5'
ok 'which has its exchange still' kill -0 "$first"
hold e5
renew
ok 'one more, and the first ends' wait_for 10 not kill -0 "$first"
like 'its exchange was cut, which is told' "$(denied "$endless")" '^slow.agentbox cut: egress was replaced too often'
like 'and logged' "$(cat "$T/log")" 'is stopped: more than 4 would be finishing'
abctl cancel --now "$endless" >/dev/null
for s in e2 e3 e4 e5; do abctl cancel --now "$(json 'l.runId||l.run' <"$T/$s.run")" >/dev/null; done
ok 'with their jails the others end' wait_for 20 one_left

# while no supervisor is there
super() { child_pid '^agentbox-supervisor'; }
printf '#!/bin/sh\n[ $# = 2 ] || exit 1 # asked for its build alone\n' >"$T/bin/none"
chmod 755 "$T/bin/none"
away() { cp "$T/bin/none" "$T/bin/x" && mv "$T/bin/x" "$T/bin/agentbox-supervisor" && kill -9 "$(super)"; }
back() { replace agentbox-supervisor && wait_for 20 abctl version; }
jail_dir() { echo "$T/state/sessions/$1/workspace"; }
go() { # SESSION-ID FILE: no supervisor is asked for it
	local dir
	dir=$(jail_dir "$1") && touch "$dir/$2" && chown 536871912:536871912 "$dir/$2"
}
begin names n "$(cat "$T/names")"
names=$id
session=$(json 'l.sessionId||l.session' <"$T/n.run")
away
go "$session" go
sleep 2
is 'no supervisor is there' "$(super)" ''
replace agentboxd
kill -HUP "$DAEMON"
ok 'nor after another agentboxd has taken over' wait_for 20 sh -c "test \$(stat -L -c %i /proc/$DAEMON/exe) = \$(stat -c %i $T/bin/agentboxd)"
ok 'it comes back' back
told() { [ "$(denied "$names" | grep -c '^n[0-9]*-x.example ')" -ge 30 ]; }
ok 'what was refused meanwhile is told' wait_for 30 told
told || echo "# $(denied "$names" | cut -d' ' -f1 | sort -V | tr '\n' ' ')"
is 'once' "$(denied "$names" | cut -d' ' -f1 | sort | uniq -d)" ''
is 'and nothing was lost' "$(abctl logs "$names" --json | grep -c 'egress.gap')" 0
go "$session" stop
ok 'the run ends' wait_for 20 ended "$names"
sessions='' ids=''
for i in $(seq 16); do
	begin many "m$i" "$(cat "$T/names")"
	ids="$ids $id"
	sessions="$sessions $(json 'l.sessionId||l.session' <"$T/m$i.run")"
done
away
for s in $sessions; do go "$s" go; done
sleep 9
ok 'more than is kept' back
gaps() { for i in $ids; do abctl logs "$i" --json | json 'e.filter(x=>x.type==="egress.gap").map(x=>x.events).join("\n")'; done | awk 'NF { n += $1 } END { print n + 0 }'; }
some() { [ "$(gaps)" -gt 0 ]; }
ok 'is counted' wait_for 10 some
echo "# $(gaps) were not kept"
n=$(for i in $ids; do denied "$i" | grep -c .; done | awk '{ n += $1 } END { print n }')
ok "the others are told ($n)" test "$n" -ge 1024
for s in $sessions; do go "$s" stop; done
for i in $ids; do wait_for 20 ended "$i" || echo "# $i goes on"; done
ok 'nothing is left' wait_for 20 no_jail_processes
finish
