# shellcheck shell=bash
# network.sh - an internet of the test's own: sourced before lib.sh.
#
# The test starts over in a network and mount namespace with one cable to another namespace, where
# tests/integration/internet.py is the resolver and every server (198.41.0.10, a public address, as
# are all others that AnyIP answers there).  /etc has its resolver and trusts its certificates.
#
#	. tests/integration/network.sh
#	. tests/integration/lib.sh
#	internet HOST...		starts it, with a certificate for these hosts
#	queries NAME			how often the resolver was asked for it
#
# Files of a host: $NET/srv/HOST/...; addresses of names: $NET/names; its log: $NET/log.

if [ -z "${AGENTBOX_TEST_NETWORK:-}" ] && [ "$(id -u)" = 0 ]; then
	export AGENTBOX_TEST_NETWORK=1
	exec unshare --net --mount --propagation private --fork --kill-child bash "$0" "$@"
fi

internet() {
	NET=$T/internet
	OUTSIDE=198.41.0.10
	mkdir -p "$NET/srv" "$NET/etc"
	trap '_offline; _at_exit' EXIT
	echo "* $OUTSIDE" >"$NET/names"
	local names
	names=$(printf ',DNS:%s' "$@")
	openssl req -x509 -newkey rsa:2048 -nodes -keyout "$NET/key.pem" -out "$NET/cert.pem" -days 2 \
		-subj /CN=agentbox-test -addext "subjectAltName=${names#,}" >/dev/null 2>&1 || return 1
	_etc && _cable || return 1
	nsenter --net="$NET/ns" python3 tests/integration/internet.py "$NET/srv" "$NET/names" "$NET/log" \
		>"$NET/up" 2>"$NET/err" &
	SERVERS=$!
	wait_for 20 grep -q ready "$NET/up" && return 0
	sed 's/^/# /' "$NET/err"
	return 1
}

# Our files over those of the host, for this test's mount namespace.
_etc() {
	echo "nameserver $OUTSIDE" >"$NET/etc/resolv.conf"
	echo '127.0.0.1 localhost' >"$NET/etc/hosts"
	cp -RL /etc/ssl/certs "$NET/etc/certs" && cat "$NET/cert.pem" >>"$NET/etc/certs/ca-certificates.crt"
	mount --bind "$NET/etc/resolv.conf" "$(realpath /etc/resolv.conf)" &&
		mount --bind "$NET/etc/hosts" /etc/hosts &&
		mount --bind "$NET/etc/certs" /etc/ssl/certs
}

_cable() {
	: >"$NET/ns"
	unshare --net="$NET/ns" true &&
		ip link set lo up &&
		ip link add cable type veth peer name far netns "$NET/ns" &&
		ip addr add 198.41.0.1/24 dev cable &&
		ip link set cable up &&
		nsenter --net="$NET/ns" sh -c 'ip link set lo up; ip addr add 198.41.0.10/24 dev far; ip link set far up
			ip route add local 0.0.0.0/0 dev lo; ip route add 198.41.0.0/24 dev far 2>/dev/null; true' &&
		ip route add default via 198.41.0.10
}

# What would keep the test's directory.
_offline() {
	[ -z "$DAEMON" ] || stop_daemon KILL
	[ -z "${SERVERS:-}" ] || kill "$SERVERS"
	umount -l "$NET/ns" /etc/ssl/certs /etc/hosts "$(realpath /etc/resolv.conf)"
}

queries() { grep -cx "dns $1" "$NET/log"; }
asked() { grep -c "^http $1 " "$NET/log"; }

# Harness `late`, whose run makes `up`, waits for `go` and says what it got: agentboxd and egress are
# replaced under it, in $T/bin by those of DIR.  Its events go to $T/out.
renewed_under_a_run() { # DIR
	abctl run late -s late/one -p x --json >"$T/out" 2>/dev/null &
	local after=$! f
	ok 'a run that waits' wait_for 60 abctl exec late/one -- test -e /workspace/up
	for f in agentboxd agentbox-egress; do cp "$1/$f" "$T/bin/$f.new" && mv "$T/bin/$f.new" "$T/bin/$f"; done
	ok 'new programs' abctl reload
	ok 'in use' wait_for 60 grep -q 'takes over from here' "$T/log"
	ok 'the run is still there' wait_for 60 abctl exec late/one -- touch /workspace/go
	wait $after
}
