#!/usr/bin/env bash
# A new binary of agentboxd is taken into use under living jails: the same process, every byte once,
# limits and cancels as before, nothing left open. One that cannot take over changes nothing.
. tests/integration/lib.sh
. tests/integration/runs.sh

mkdir -p "$T/etc/policy" "$T/bin" "$T/share"
cp "$BIN"/agentboxd "$BIN"/agentbox-* "$T/bin/"
ln -s "$PWD/harnesses" "$T/share/harnesses"
: >"$T/log"
PORT=$(python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
echo "listen: [{ address: '127.0.0.1:$PORT' }]" >>"$T/etc/agentboxd.yaml"
over_tcp() { curl -sf "http://127.0.0.1:$PORT/healthz"; }
policy() { printf 'extends: default\n%s\n' "$2" >"$T/etc/policy/$1.yaml"; }
policy disk 'limits: { disk: 32M }'
script greedy 'sleep 4; wc -c; sleep 1'
script asleep 'i=0; while [ $i -lt 30 ]; do echo $i; sleep 0.1; i=$((i+1)); done'
script forever 'trap : TERM; echo on; while :; do sleep 1; done'
script disk 'echo on; while [ ! -e go ]; do sleep 0.1; done; dd if=/dev/zero of=big bs=1M count=64 2>/dev/null; sleep 1; wc -c <big' 'policy: disk'
script left 'wc -c <big' 'policy: disk'

# as a service manager starts it: with a socket, and somebody to tell
cat >"$T/manager.py" <<'P'
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
s.bind(sys.argv[1]); s.listen(64)
os.dup2(s.fileno(), 9)
os.dup2(9, 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", NOTIFY_SOCKET=sys.argv[2])
os.execv(sys.argv[3], sys.argv[3:])
P
cat >"$T/notes.py" <<'P'
import socket, sys
n = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
n.bind(sys.argv[1])
with open(sys.argv[2], "wb", buffering=0) as f:
    while True:
        f.write(n.recv(4096))
P
python3 "$T/notes.py" "$T/notify" "$T/notes" >/dev/null 2>&1 &
notes=$!
trap 'kill $notes; _at_exit' EXIT
wait_for 10 test -S "$T/notify"
begin_daemon() { # as start_daemon, from the copies
	BIN=$T/bin
	ln -sf "$built/abctl" "$T/bin/abctl"
	start_daemon --config "$T/etc/agentboxd.yaml" --share "$T/share"
	local r=$?
	BIN=$built
	[ $r = 0 ] || { echo "not ok 1 - start"; echo 1..1; exit 1; }
}
DAEMON_ENV=(python3 "$T/manager.py" "$T/sock" "$T/notify")
begin_daemon
DAEMON_ENV=()

since() { abctl version --json | json 'l.daemon.agentboxd.since'; }
later() { [ "$(since)" != "$1" ]; }
reload() { timeout 60 "$BIN/abctl" --socket "$T/sock" reload >"$T/reload.out" 2>>"$T/reload.err"; }
upgrade() {
	local old
	old=$(since)
	renew "$T/bin" "${@:-agentboxd}"
	reload && later "$old"
}
descriptors() { find "/proc/$DAEMON/fd" -mindepth 1 | wc -l; }
cgroups() { find "$CGROUP" -mindepth 1 -type d | wc -l; }
blocks() { # of user ids that are leased here
	local fd
	for fd in "/proc/$DAEMON"/fd/*; do
		[ "$(readlink "$fd")" = /run/agentbox/leases ] && cat "/proc/$DAEMON/fdinfo/${fd##*/}"
	done | awk '$1 == "lock:" { n += $NF - $(NF - 1) + 1 } END { print n + 0 }'
}
children() { pgrep -P "$DAEMON" | wc -l; }
held() { echo "$(descriptors) $(cgroups) $(blocks) $(children)"; }
steady() { # the pool is full and what was closed is gone
	local a b=''
	for _ in $(seq 40); do
		a=$(held)
		[ "$a" = "$b" ] && sleep 1 && [ "$(held)" = "$a" ] && break
		b=$a
		sleep 0.5
	done
	held
}

pid=$DAEMON
ok 'agentboxd is replaced when abctl says so' upgrade
ok 'clients of TCP find the next one' wait_for 10 over_tcp
is 'and it says so' "$(cat "$T/reload.out")" reloaded
is 'it is the same process' "$(child_pid agentbox-egress | xargs ps -o ppid= -p | tr -d ' ')" "$pid"
is 'under its name' "$(cat "/proc/$pid/comm")" agentboxd
is 'with the program that is there now' "$(stat -L -c %i "/proc/$pid/exe")" "$(stat -c %i "$T/bin/agentboxd")"
is 'its environment is wiped' "$(tr -d '\0' <"/proc/$pid/environ")" ''
like 'it serves on the socket that it was given' "$(abctl version)" 'agentboxd [0-9.]+, since 20'
is 'the manager is told of both' "$(grep -c -e READY=1 -e RELOADING=1 "$T/notes")" 3
before=$(steady)

# every kind of run
run chatty c1 "$(chatty 0.02)" &
a=$!
run chatty c2 "$(chatty 0.02)" &
b=$!
head -c 2000000 /dev/zero | tr '\0' x >"$T/big"
timeout 90 "$BIN/abctl" --socket "$T/sock" run greedy -s u/greedy -p - --json <"$T/big" >"$T/greedy.out" 2>"$T/greedy.err" &
c=$!
begin short t
timed=$id
begin disk d
disk=$id
begin asleep f
frozen=$id
# the youngest jail in which something lives
freezer=$(grep -l 'populated 1' "$CGROUP"/jail-*/cgroup.events | sed 's/.*jail-\([0-9]*\).*/\1/' | sort -n | tail -n 1)
freezer=$CGROUP/jail-$freezer
echo 1 >"$freezer/cgroup.freeze"
begin ends e
ending=$id
missed=0
for i in 1 2 3; do
	upgrade agentboxd agentbox-supervisor || missed=$((missed + 1))
done
is 'three upgrades under them' $missed 0
ok 'a run that ended meanwhile has ended well' wait_for 20 ended "$ending"
is 'as it said' "$(status "$ending")" succeeded
is 'with its artifact' "$(abctl logs "$ending" --json | json 'l.result.artifacts.map(a=>a.path).join()')" out/x
echo 0 >"$freezer/cgroup.freeze"
ok 'the frozen one goes on when it may' wait_for 30 ended "$frozen"
is 'and is whole' "$(abctl logs "$frozen" --json | json 'e.filter(x=>x.type==="agent.message").map(x=>x.text).join("")')" "$(seq 0 29)"
abctl exec u/d -- touch go
ok 'the one with a disk limit ends' wait_for 30 ended "$disk"
said=$(abctl logs "$disk" --json | json 'e.filter(x=>x.type==="agent.message").map(x=>x.text).join("").split("\n").filter(x=>x).pop()')
wait $a $b $c
for n in c1 c2; do
	is "$n: it ends well" "$(json 'l.result.status' <"$T/$n.out")" succeeded
	is "$n: its numbers have no hole" "$(seq_ok $n)" true
	is "$n: every byte is there, once" "$(text $n)" "$want_text"
	is "$n: and of its errors" "$(errors $n)" "$want_errors"
	is "$n: no gap" "$(gaps $n)" 0
	is "$n: its artifact" "$(json 'l.result.artifacts.map(a=>a.path).join()' <"$T/$n.out")" out/file
done
is 'input goes on where it was' "$(text greedy)" 2000000
ok 'the time limit holds over it' wait_for 30 ended "$timed"
is 'as a timeout' "$(status "$timed")" timeout
disks=$(abctl doctor --json | json 'l.layers.find(x=>x.layer==="limit.disk").have' | grep yes)
if [ -n "$disks" ]; then
	ok "the disk limit holds over it ($said bytes)" test "$said" -gt 30000000 -a "$said" -le 33554432
	like 'and is told' "$(abctl logs "$disk" --json)" '"limit.hit".*"disk"'
	run left d x
	is 'its files are there for the next run' "$(text d | tr -d '\n')" "$said"
	abctl session rm u/d >/dev/null
	ok 'no image stays mounted' wait_for 20 sh -c "! grep -q '^$T/' /sys/block/loop*/loop/backing_file"
else
	echo '# no disk limit on this host: its carrying over is not looked at'
	[ "${AGENTBOX_MUST_WORK:-0}" != 1 ] || is 'a disk limit must work here' no yes
fi
# files of a session that are being copied would have to be copied again
script fills 'head -c 300M /dev/urandom >big; echo filled' # mke2fs skips zeroes
policy wide 'limits: { disk: 1G }'
script copied 'wc -c <big' 'policy: wide'
ok 'a policy more' upgrade
if [ -n "$disks" ]; then
	run fills w x
	run copied w x &
	a=$!
	held_up() { copies=$(pgrep -P "$DAEMON" -f mke2fs) && kill -STOP "$copies"; }
	ok 'files of a session are copied' wait_for 20 held_up
	renew "$T/bin" agentboxd
	reload
	kill -CONT "$copies"
	like 'meanwhile nothing takes over' "$(tail -n 1 "$T/reload.err")" 'files of 1 sessions are being made ready'
	: >"$T/reload.err"
	wait $a
	is 'they are not begun again' "$(text w | tr -d '\n')" 314572800
	ok 'and afterwards it works' upgrade
	abctl session rm u/w >/dev/null
fi
begin forever x
ok 'another upgrade' upgrade
abctl cancel "$id" >/dev/null
ok 'a cancel comes through' wait_for 20 ended
is 'it is cancelled' "$(status)" cancelled
abctl session rm u/x >/dev/null

# many
missed=0
for i in $(seq 20); do
	[ $((i % 7)) != 1 ] || { run chatty "m$i" "$(chatty 0.02)" & pids="${pids:-} $!"; }
	files=agentboxd
	[ $((i % 5)) != 0 ] || files='agentboxd agentbox-supervisor agentbox-policyc agentbox-init'
	# shellcheck disable=SC2086 # a list
	upgrade $files || missed=$((missed + 1))
done
is 'twenty more' "$missed$(cat "$T/reload.err")" 0
# shellcheck disable=SC2086 # a list of numbers
wait $pids
for n in m1 m8 m15; do
	is "$n: every byte is there, once" "$(json 'l.result.status' <"$T/$n.out") $(gaps $n) $(text $n)" "succeeded 0 $want_text"
done
ok 'no jail is left' wait_for 20 no_jail_processes
is 'descriptors, cgroups, blocks of ids and children are as many as before' "$(steady)" "$before"

# one that is replaced itself before it takes over
tried() { grep -c 'takes over once the supervisor has made room' "$T/log"; }
another() { [ "$(tried)" -gt "$1" ]; }
is_current() { test "$(stat -L -c %i "/proc/$DAEMON/exe")" = "$(stat -c %i "$T/bin/agentboxd")"; }
old=$(since) before=$(tried) slow=$(super)
kill -STOP "$slow"
renew "$T/bin" agentboxd
kill -HUP "$DAEMON"
ok 'while the supervisor makes room' wait_for 20 another "$before"
renew "$T/bin" agentboxd
kill -CONT "$slow"
ok 'the one that was tried takes over' wait_for 30 later "$old"
ok 'which is not the one that is there now' not is_current
reload
ok 'that takes over next' wait_for 30 is_current
wait_for 30 abctl version

# what cannot take over
begin forever y
keeps=$id
old=$(since) serving=$(super)
as_it_was() { # REGEX [WHAT]
	reload
	is 'abctl says so' $? 111
	like 'with the reason' "$(tail -n 1 "$T/reload.err")" "${2:-cannot take over, everything stays as it is}: .*$1"
	is 'nothing has changed' "$(since) $(super)" "$old $serving"
}
other() { chmod "${1:-755}" "$T/bin/x" && mv "$T/bin/x" "$T/bin/agentboxd"; }
printf '#!/bin/sh\necho something is wrong >&2\nexit 1\n' >"$T/bin/x"
other
echo '# one that exits 1'
as_it_was 'exit code 1: something is wrong'
echo '# one that is not executable'
cp "$built/agentboxd" "$T/bin/x"
other 644
as_it_was 'exec: Permission denied'
echo '# one that is found well and then cannot be executed: its name is gone with the descriptor'
printf '#!/bin/sh\nexit 0\n' >"$T/bin/x"
other
reload
is 'abctl says so, which has waited' $? 111
like 'with the reason' "$(tail -n 1 "$T/reload.err")" 'does not take over, this one goes on: exec: '
like 'as the API does' "$(abctl version --json | json 'l.daemon.agentboxd.stays')" 'agentboxd does not take over'
is 'agentboxd is the same' "$(since)" "$old"
serving=$(super)
echo '# half a file'
head -c 20000 "$built/agentboxd" >"$T/bin/x"
other
as_it_was '(signal|exit code|exec)'
echo '# one that hangs'
printf '#!/bin/sh\nexec sleep 60\n' >"$T/bin/x"
other
as_it_was 'did not end within 10 s'
echo '# an older one, which knows less of a jail'
sed 's/l\.rss_peak_bytes/l.rss_peek_bytes/' "$built/agentboxd" >"$T/bin/x"
other
as_it_was "does not know 'l.rss_peak_bytes'"
build=$("$built/agentbox-egress" --build x 2>&1 | sed -n 's/.*agentboxd (\([0-9a-f]*\), not x.*/\1/p')
other_build() { # PROGRAM
	sed "s/$build/b0123456789abcdef/g" "$built/$1" >"$T/bin/x" && chmod 755 "$T/bin/x" && mv "$T/bin/x" "$T/bin/$1"
}
for program in agentbox-supervisor agentbox-egress; do
	echo "# $program of another build, and then agentboxd too"
	renew "$T/bin" agentboxd
	reload && later "$old"
	old=$(since) serving=$(super)
	other_build $program
	as_it_was "$program: .*of another build than agentboxd \(b0123456789abcdef, not $build\)" 'the policies in use stay'
	renew "$T/bin" agentboxd
	as_it_was "$program: .*of another"
	renew "$T/bin" $program
done
echo '# files that do not hold'
printf 'limits: { pids: x }\n' >"$T/etc/policy/bad.yaml"
renew "$T/bin" agentboxd
as_it_was 'bad.yaml'
rm "$T/etc/policy/bad.yaml"
is 'the run goes on' "$(abctl ps --json | grep -c "$keeps")" 1
ok 'a good one takes over' upgrade
is 'with its run' "$(abctl ps --json | grep -c "$keeps")" 1

# and it is still the parent whose death ends all
kill -9 "$DAEMON"
ok 'with agentboxd its jails die' wait_for 10 no_jail_processes
wait "$DAEMON" 2>/dev/null
DAEMON=''
rm -f "$T/sock"
begin_daemon # its own socket now
ok 'the run is interrupted' wait_for 20 sh -c "$BIN/abctl --socket $T/sock show $keeps --json | grep -q interrupted"
ok 'one that made its socket itself is replaced' upgrade
ok 'and SIGHUP does it, too' sh -c "cp $built/agentboxd $T/bin/x && mv $T/bin/x $T/bin/agentboxd && kill -HUP $DAEMON"
ok 'after which it is new' wait_for 30 sh -c "test \$(stat -L -c %i /proc/$DAEMON/exe) = \$(stat -c %i $T/bin/agentboxd)"
wait_for 20 abctl version
stop_daemon
is 'it stops as ever' $? 0
ok 'and takes its socket along' not test -e "$T/sock"
finish
