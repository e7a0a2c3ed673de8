#!/usr/bin/env bash
# agentboxd as a service: its command line, what it refuses to start with, socket
# activation, readiness, reload, stopping.
. tests/integration/lib.sh

answers() { abctl version --json; }
exits() { # CODE COMMAND...
	local want=$1
	shift
	timeout 60 "$@" >"$T/out" 2>&1
	test $? = "$want"
}

ok 'help' exits 0 "$BIN/agentboxd" --help
ok 'version' exits 0 "$BIN/agentboxd" --version
ok 'an unknown option is usage' exits 100 "$BIN/agentboxd" --sate /x
cp "$BIN/agentboxd" "$T/"
ok 'not root is refused' exits 111 setpriv --reuid 65534 --regid 65534 --clear-groups "$T/agentboxd"
like 'and says so' "$(cat "$T/out")" 'must be started as root'
mkdir -p "$T/open" "$T/etc/policy"
chmod 777 "$T/open"
ok 'a state directory others may write' exits 111 "$BIN/agentboxd" --state "$T/open" --socket "$T/sock"
like 'says what to do' "$(cat "$T/out")" 'chmod go-w'
mkdir "$T/foreign"
touch "$T/foreign/file"
ok 'a directory that is somebody else'"'"'s' exits 111 "$BIN/agentboxd" --state "$T/foreign" --socket "$T/sock"
is 'nothing is put into it' "$(ls "$T/foreign")" file
ok 'a configuration that was named and is missing' exits 111 "$BIN/agentboxd" --state "$T/state" --socket "$T/sock" --config "$T/none.yaml"
like 'is named' "$(cat "$T/out")" 'none.yaml'
: >"$T/etc/agentboxd.yaml"
chmod 666 "$T/etc/agentboxd.yaml"
ok 'a configuration others may write' exits 111 "$BIN/agentboxd" --state "$T/state" --socket "$T/sock" --config "$T/etc/agentboxd.yaml"
like 'is named' "$(cat "$T/out")" "$T/etc/agentboxd.yaml may be written by others"
chmod 644 "$T/etc/agentboxd.yaml"
echo 'limits: { memroy: 1G }' >"$T/etc/policy/bad.yaml"
ok 'a policy that does not hold' exits 111 "$BIN/agentboxd" --state "$T/state" --socket "$T/sock" --config "$T/etc/agentboxd.yaml"
like 'with file, line and a suggestion' "$(cat "$T/out")" "$T/etc/policy/bad.yaml:1.*memroy.*memory"
rm "$T/etc/policy/bad.yaml"
ok 'nothing of that is left' not pgrep -f "$T/state"

# a service manager
cat >"$T/manager.py" <<'P'
import os, socket, sys, threading
t, argv = sys.argv[1], sys.argv[2:]
n = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
n.bind(t + "/notify")
l = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
l.bind(t + "/sock")
l.listen(8)
pid = os.fork()
if pid == 0:
    os.dup2(l.fileno(), 3)
    os.set_inheritable(3, True)
    os.environ.update(NOTIFY_SOCKET=t + "/notify", WATCHDOG_USEC="400000", LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
    os.execv(argv[0], argv)
l.close()
def note():
    while True:
        with open(t + "/notes", "ab") as f:
            f.write(n.recv(4096))
threading.Thread(target=note, daemon=True).start()
open(t + "/pid", "w").write(str(pid))
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
open(t + "/code", "w").write(str(code))
P
TEST_SECRET=hush python3 "$T/manager.py" "$T" "$BIN/agentboxd" --state "$T/state" --config "$T/etc/agentboxd.yaml" 2>"$T/log" &
noted() { grep -q "$1" "$T/notes"; }
ok 'READY=1 is told' wait_for 30 noted READY=1
DAEMON=$(cat "$T/pid")
alive() { [ "$(grep -c '^WATCHDOG=1' "$T/notes")" -ge "$1" ]; }
ok 'its watchdog hears of it again and again' wait_for 30 alive 4
ok 'it answers on the socket it was given' answers
is 'its environment is wiped' "$(tr -d '\0' <"/proc/$DAEMON/environ")" ''
children() { # FILE: of every child
	local p
	for p in $(pgrep -P "$DAEMON"); do tr '\0' '\n' <"/proc/$p/$1"; done
}
is 'so is that of its children' "$(children environ | grep -c hush)" 0
is 'no child has a capability' "$(children status | grep -E '^Cap(Eff|Prm|Bnd|Amb)' | grep -cv '0000000000000000$')" 0
is 'no child is root' "$(children status | grep -cE '^[UG]id:.*[[:space:]]0([[:space:]]|$)')" 0
is 'none has a group besides its own' "$(children status | sed -n 's/^Groups:[[:space:]]*//p' | tr -d ' \n')" ''
is 'none can gain privileges' "$(children status | grep '^NoNewPrivs' | grep -cv '1$')" 0
for name in supervisor egress; do
	pid=$(child_pid "agentbox-$name")
	like "$name has a filter" "$(cat "/proc/$pid/status")" '^Seccomp:.2'
	is "$name sees of the environment" "$(tr '\0' '\n' <"/proc/$pid/environ" | cut -d= -f1)" PATH
done
sockets() { # NAME: how many of its sockets are no Unix sockets
	local fd n=0
	for fd in "/proc/$(child_pid "$1")"/fd/*; do
		fd=$(readlink "$fd")
		[ "${fd#socket:}" = "$fd" ] || grep -q " $(tr -dc 0-9 <<<"$fd") " <(awk '{print " " $7 " "}' /proc/net/unix) || n=$((n + 1))
	done
	echo $n
}
is 'the supervisor has no socket but Unix ones' "$(sockets agentbox-supervisor)" 0
# who can parse what, by the link line
links() { # NAME REGEX: libraries that it must not have
	readelf -d "$BIN/$1" | grep NEEDED | grep -cE "lib($2)\."
}
ok 'readelf sees libraries' test "$(links agentboxd 'c')" = 1
is 'agentboxd links no parser' "$(links agentboxd 'yaml.*|cjson|curl|cares|sqlite3|uring|seccomp|crypto|ssl')" 0
is 'the supervisor no client of the network' "$(links agentbox-supervisor 'curl|cares|seccomp|nl-.*')" 0
is 'egress no YAML, store or ring' "$(links agentbox-egress 'yaml.*|sqlite3|uring|seccomp|nl-.*')" 0
is 'the compiler of policies no network' "$(links agentbox-policyc 'curl|cares|sqlite3|uring|nl-.*')" 0
is 'who makes authorities nothing but arithmetic' "$(links agentbox-authority 'curl|cares|ssl|yaml.*|cjson|sqlite3|uring|seccomp|nl-.*')" 0
is 'PID 1 of a jail and its worker nothing' "$(links agentbox-init '.*'; links agentbox-worker '.*')" "$(printf '0\n0')"
ok 'and there are some' test "$(children status | grep -c '^Uid')" -ge 2
policies() { abctl policy ls; }
has() { policies | grep -q "$1"; }
abctl jail -- sleep 1000 >/dev/null 2>&1 &
wait_for 10 pgrep -f '^sleep 1000'
egress=$(child_pid agentbox-egress)
printf 'extends: default\n' >"$T/etc/policy/added.yaml"
kill -HUP "$DAEMON"
ok 'SIGHUP reads the policies again' wait_for 10 has added
is 'with a jail alive, by the same egress' "$(child_pid agentbox-egress)" "$egress"
ok 'RELOADING=1 was told' noted RELOADING=1
echo 'limits: { pids: x }' >"$T/etc/policy/added.yaml"
kill -HUP "$DAEMON"
ok 'a reload that fails says so' wait_for 10 grep -q 'reload failed' "$T/log"
ok 'and keeps the old policies' has added
ok 'which work' abctl jail --policy added -- true
chmod 666 "$T/etc/policy/added.yaml"
ok 'abctl reload gets the reason' exits 100 "$BIN/abctl" --socket "$T/sock" reload
like 'with the file' "$(cat "$T/out")" 'added.yaml'
kill -TERM "$DAEMON"
ok 'SIGTERM stops it' wait_for 20 test -e "$T/code"
DAEMON=''
is 'with code 0' "$(cat "$T/code")" 0
ok 'STOPPING=1 was told' noted STOPPING=1
ok 'the manager'"'"'s socket is left alone' test -S "$T/sock"
rm -f "$T/sock"

# stopping while an agent works and the supervisor hangs
rm "$T/etc/policy/added.yaml"
start_daemon --config "$T/etc/agentboxd.yaml"
abctl jail -- sh -c 'trap "" TERM INT; sleep 1000' >/dev/null 2>&1 &
sleep 1
kill -STOP "$(child_pid agentbox-supervisor)" # it will not hear of the stop
kill -TERM "$DAEMON"
ok 'it waits for a supervisor that does not answer' sh -c "sleep 2; kill -0 $DAEMON"
start=$(date +%s%N)
kill -TERM "$DAEMON"
wait "$DAEMON"
is 'a second signal stops at once, with code 0' $? 0
ok 'at once' test $((($(date +%s%N) - start) / 1000000)) -lt 3000
DAEMON=''
ok 'its socket is gone' test ! -e "$T/sock"

# a host that keeps io_uring for root
ring=/proc/sys/kernel/io_uring_disabled
if [ -w $ring ] && [ "$(cat $ring)" = 0 ]; then
	trap 'echo 0 >$ring; _at_exit' EXIT
	echo 1 >$ring
	start_daemon --config "$T/etc/agentboxd.yaml"
	is 'kernel.io_uring_disabled=1 is no hindrance' "$(abctl run hello -s u/ring -p hi --json | json 'l.result.status')" succeeded
	echo 0 >$ring
fi
finish
