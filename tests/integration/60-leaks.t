#!/usr/bin/env bash
# 200 runs in a loop and 50 at once leave nothing more than before.
. tests/integration/lib.sh

start_daemon || { echo "not ok 1 - start"; echo 1..1; exit 1; }
for i in $(seq 5); do abctl jail -- true 2>/dev/null; done
# the logs of sessions in use stay open: the same ones as later
for i in $(seq 4); do abctl run hello -s "u/g$((i % 4))" -p x --json >/dev/null; done
sleep 1

fds() { ls "/proc/$1/fd" 2>/dev/null | wc -l; }
measure() {
	echo "fd-agentboxd $(fds "$DAEMON")"
	echo "fd-supervisor $(fds "$(child_pid agentbox-supervisor)")"
	echo "fd-egress $(fds "$(child_pid agentbox-egress)")"
	echo "mounts $(wc -l </proc/self/mountinfo)"
	echo "cgroups $(find "$(daemon_cgroup)" -type d 2>/dev/null | wc -l)"
	echo "loops $(losetup -a 2>/dev/null | grep -c "$T/")"
	echo "processes $(pgrep -P "$DAEMON" | wc -l)"
	echo "netns $(find "/proc/$DAEMON/fd" -lname 'net:*' -exec readlink {} \; 2>/dev/null | sort -u | wc -l)"
}
settled() { measure >"$T/now"; cmp -s "$T/before" "$T/now"; }

measure >"$T/before"
bad=0
for i in $(seq 160); do abctl jail -- true >/dev/null 2>&1 || bad=$((bad + 1)); done
for i in $(seq 40); do abctl run hello -s "u/g$((i % 4))" -p x --json >/dev/null 2>&1 || bad=$((bad + 1)); done
is '200 runs in a loop succeed' "$bad" 0
ok 'and leave nothing more than before' wait_for 15 settled || diff "$T/before" "$T/now" | sed 's/^/# /'

pids=''
for i in $(seq 50); do
	abctl jail -- sh -c 'sleep 1; exit 9' >/dev/null 2>&1 &
	pids="$pids $!"
done
bad=0
for p in $pids; do wait "$p"; [ $? = 9 ] || bad=$((bad + 1)); done
is '50 at once succeed' "$bad" 0
ok 'and leave nothing more than before' wait_for 15 settled || diff "$T/before" "$T/now" | sed 's/^/# /'
ok 'no process of a jail' no_jail_processes
finish
