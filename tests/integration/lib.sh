# shellcheck shell=bash
# lib.sh - TAP and a private agentboxd for the integration tests.
#
#	. tests/integration/lib.sh
#	start_daemon
#	ok 'it greets' abctl run hello -s u/g -p hi
#	finish
#
# $T is a directory of the test's own; abctl talks to the test's daemon.  All
# of it is gone at exit, also after a failure.

set -u
BIN=${BIN:-build/release/bin}
TESTS=${TESTS:-build/release/tests}
count=0
failed=0
T=$(mktemp -d /tmp/agentbox-test.XXXXXX)
chmod 755 "$T"
DAEMON=''
DAEMON_ENV=() # a command in front of the daemon's, that execs it
CGROUP=''

skip_all() {
	if [ "${AGENTBOX_MUST_WORK:-0}" = 1 ]; then
		echo "not ok 1 - must work here: $1"
		echo "1..1"
		exit 1
	fi
	echo "1..0 # SKIP $1"
	exit 0
}

_at_exit() {
	[ -z "$DAEMON" ] || stop_daemon KILL
	# A killed daemon leaves this to the next start, and here is none.
	if [ -n "$CGROUP" ] && [ -d "$CGROUP" ]; then
		echo 1 >"$CGROUP/cgroup.kill"
		wait_for 5 grep -q 'populated 0' "$CGROUP/cgroup.events"
		find "$CGROUP" -depth -type d -exec rmdir {} +
	fi
	rm -rf "$T"
}
trap _at_exit EXIT
[ "$(id -u)" = 0 ] || skip_all 'needs root'

# ok DESCRIPTION COMMAND...: passes when the command does
ok() {
	local what=$1
	shift
	count=$((count + 1))
	if "$@" >"$T/ok.out" 2>&1; then
		echo "ok $count - $what"
		return 0
	fi
	echo "not ok $count - $what"
	echo "# command: $*"
	tail -n 20 "$T/ok.out" | sed 's/^/# /'
	failed=1
	return 1
}

not() { ! "$@"; }

# is DESCRIPTION GOT WANT
is() {
	count=$((count + 1))
	if [ "$2" = "$3" ]; then
		echo "ok $count - $1"
		return 0
	fi
	echo "not ok $count - $1"
	printf '%s\n' "got:  $2" "want: $3" | head -c 2000 | sed 's/^/# /'
	failed=1
	return 1
}

# like DESCRIPTION GOT EXTENDED-REGEX (over all lines)
like() {
	count=$((count + 1))
	if printf '%s\n' "$2" | grep -qE -- "$3"; then
		echo "ok $count - $1"
		return 0
	fi
	echo "not ok $count - $1"
	printf '%s\n' "got:  $2" "want: /$3/" | head -c 2000 | sed 's/^/# /'
	failed=1
	return 1
}

finish() {
	echo "1..$count"
	if [ $failed != 0 ] && [ -s "$T/log" ]; then
		echo '# what agentboxd and its children said:'
		tail -n 60 "$T/log" | sed 's/^/# /'
	fi
	exit $failed
}

# With the sanitizers' shadow memory and quarantine, figures of memory say nothing.
sanitized() { grep -q __asan_init "$BIN/agentboxd"; }

abctl() { "$BIN/abctl" --socket "$T/sock" "$@"; }

# start_daemon [ARGS...]: waits until it answers; its log is $T/log
start_daemon() {
	"${DAEMON_ENV[@]}" "$BIN/agentboxd" --state "$T/state" --socket "$T/sock" "$@" 2>>"$T/log" &
	DAEMON=$!
	local i
	for i in $(seq 300); do
		if abctl version --json >/dev/null 2>&1; then
			CGROUP=$(daemon_cgroup)
			return 0
		fi
		kill -0 "$DAEMON" 2>/dev/null || break
		sleep 0.1
	done
	echo "# agentboxd did not come up:"
	tail -n 20 "$T/log" | sed 's/^/# /'
	return 1
}

# stop_daemon [SIGNAL]: and waits for it
stop_daemon() {
	kill -"${1:-TERM}" "$DAEMON" 2>/dev/null
	wait "$DAEMON" 2>/dev/null
	local status=$?
	DAEMON=''
	return $status
}

# wait_for SECONDS COMMAND...: until it passes.  So many looks as fit into SECONDS on a quiet machine,
# so that one that is slow gets longer; but not without end where each look takes long.
wait_for() {
	local tries=$(($1 * 20)) end=$((SECONDS + 5 * $1 + 10)) i
	shift
	for i in $(seq "$tries"); do
		"$@" >/dev/null 2>&1 && return 0
		[ "$SECONDS" -lt "$end" ] || break
		sleep 0.05
	done
	return 1
}

# The daemon's children by name.
child_pid() { pgrep -P "$DAEMON" -f "$1" | head -n 1; }
other_child() { [ -n "$(child_pid "$1")" ] && [ "$(child_pid "$1")" != "$2" ]; }
# kill_child NAME: until there is another one, and the daemon answers.
kill_child() {
	local old
	old=$(child_pid "$1")
	kill -9 "$old"
	wait_for 20 other_child "$1" "$old" && wait_for 10 abctl version
}

# The cgroup directory of this test's daemon, known while it runs.
daemon_cgroup() {
	readlink "/proc/$DAEMON"/fd/* 2>/dev/null | grep -m1 -E '/agentbox-[0-9a-f]+$'
}

# Processes of this daemon's jails, also after its death: those in its cgroup whose uid is in the
# lease range.  Other daemons on the host are not looked at.
jail_processes() {
	local now
	now=$(daemon_cgroup)
	CGROUP=${now:-$CGROUP}
	[ -n "$CGROUP" ] || echo 'no cgroup of the daemon is known'
	# shellcheck disable=SC2038 # what comes out are numbers
	find "$CGROUP" -name cgroup.procs -exec cat {} + 2>/dev/null |
		xargs -r ps -o uid=,pid=,stat=,args= -p 2>/dev/null |
		awk '$1 > 536936447 && $1 < 1073741824 && $3 !~ /^Z/'
}
no_jail_processes() { [ -z "$(jail_processes)" ]; }

free_port() { python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])'; }

# NAME: $T/NAME.pem and its key, for 127.0.0.1, which is its own issuer
certificate() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" \
		-addext 'subjectAltName=IP:127.0.0.1' -keyout "$T/$1.pem.key" -out "$T/$1.pem" 2>/dev/null
	chmod 600 "$T/$1.pem.key"
}

json() { node -e 'const t=require("fs").readFileSync(0,"utf8").trim().split("\n").map(JSON.parse);const f=new Function("l","e","return "+process.argv[1]);const last=t[t.length-1];const r=f(last,t);console.log(typeof r==="string"?r:JSON.stringify(r))' "$1"; }
