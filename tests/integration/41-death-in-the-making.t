#!/usr/bin/env bash
# agentboxd is killed while it makes or unmakes a jail, at places all over the way: no process of the
# jail survives, and the next start takes away all that is left.  FAULTS=all takes 250 places.
if [ "${1:-}" != inside ] && [ "$(id -u)" = 0 ]; then
	exec unshare --mount --propagation private -- bash "$0" inside
fi
. tests/integration/lib.sh

renice -n -15 -p $$ >/dev/null
[ ! -w /proc/self/autogroup ] || echo -15 >/proc/self/autogroup
mkdir -p "$T/etc"
printf 'runs:\n  pool: 0\n' >"$T/etc/agentboxd.yaml"
up() { start_daemon --config "$T/etc/agentboxd.yaml"; }
up || { echo "not ok 1 - start"; echo 1..1; exit 1; }
held() {
	echo "cgroups $(find "$(daemon_cgroup)" -mindepth 1 -type d | wc -l)"
	echo "mounts $(wc -l </proc/self/mountinfo)"
	echo "loops $(losetup -a 2>/dev/null | grep -c "$T/")"
}
alive() { [ "$(abctl jail -- echo alive 2>"$T/err")" = alive ]; }
ok 'a jail works' alive
held >"$T/before"
places=12
[ "${FAULTS:-quick}" != all ] || places=250
for i in $(seq 0 $((places - 1))); do
	"$TESTS/faults/inject" "$DAEMON" "$(daemon_cgroup)" "$T/state" "kill=$i/$places" \
		"$BIN/abctl" --socket "$T/sock" jail -- /bin/echo alive >"$T/site" 2>&1
	status=$?
	is "killed at $(head -n 1 "$T/site"): its jails end with it" $status 0
	sed -n '2,$s/^/# /p' "$T/site"
	stop_daemon KILL # where it was not killed: the next places are worth a try
	up || { echo "not ok $((count + 1)) - the next start"; break; }
	held >"$T/now"
	ok 'the next start leaves nothing of it' cmp -s "$T/before" "$T/now" || diff "$T/before" "$T/now" | sed 's/^/# /'
	ok 'and serves' alive
done
ok 'no process of a jail' wait_for 5 no_jail_processes
finish
