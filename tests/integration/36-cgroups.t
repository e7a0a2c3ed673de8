#!/usr/bin/env bash
# The layouts of cgroup2 that a daemon may start in besides the root of the hierarchy: a container that
# somebody entered from outside, and a subtree that a service manager delegated.
. tests/integration/lib.sh

mnt=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
[ -n "$mnt" ] || skip_all 'no cgroup2 mount'
home=$mnt/agentbox-layout-$$
clean_up() {
	_at_exit
	[ ! -d "$home" ] || find "$home" -depth -type d -exec rmdir {} + 2>/dev/null
}
trap clean_up EXIT
mkdir "$home"

# inside LAUNCHER...: this script's daemon in the cgroup $home, one jail in it; says what it saw
cat >"$T/inner.sh" <<'S'
. tests/integration/lib.sh
# One on its way out, which giving 1 GB back takes a moment: it is listed and cannot be moved.
python3 -c 'import os, time; b = b"x" * (1 << 30); os.write(1, b"\n"); time.sleep(60)' >"$T/large" &
large=$!
wait_for 20 test -s "$T/large"
kill -9 $large
start_daemon
echo "jail: $(abctl jail -- sh -c 'echo hi; exit 7' 2>/dev/null) $?"
echo "tree: $(daemon_cgroup)"
echo "own: $(sed -n 's/^0:://p' "/proc/$DAEMON/cgroup")"
stop_daemon
echo "stopped: $?"
S
inside() {
	(
		echo "$BASHPID" >"$home/cgroup.procs"
		exec "$@" bash "$T/inner.sh" 2>&1
	)
}

# Its first process waits outside of the pid namespace, and inside the cgroup: cgroup.procs shows it as 0.
cat >"$T/container.sh" <<S
umount -l '$mnt'
mount -t cgroup2 none '$mnt'
echo "outsiders: \$(grep -cx 0 '$mnt/cgroup.procs')"
exec "\$@"
S
out=$(inside unshare --mount --propagation private --pid --mount-proc --cgroup --fork sh "$T/container.sh")
like 'in a container that was entered from outside' "$out" '^outsiders: [1-9]'
like 'a jail works' "$out" '^jail: hi 7$'
like 'its tree is at the root that the container sees' "$out" "^tree: $mnt/agentbox-[0-9a-f]+\$"
like 'the daemon is in the leaf' "$out" '^own: /daemon$'
like 'and it stops' "$out" '^stopped: 0$'
ok 'nothing is left' find "$home" -depth -mindepth 1 -type d -exec rmdir {} +

ok 'delegated' python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.delegate", b"1")' "$home"
out=$(inside env)
like 'in a delegated subtree a jail works' "$out" '^jail: hi 7$'
like 'the tree is inside of that' "$out" "^tree: $home/agentbox-[0-9a-f]+\$"
like 'the daemon is in a leaf beside it' "$out" '^own: .*/agentbox-layout-[0-9]+/daemon$'
like 'and it stops' "$out" '^stopped: 0$'
ok 'nothing is left' find "$home" -depth -mindepth 1 -type d -exec rmdir {} +
finish
