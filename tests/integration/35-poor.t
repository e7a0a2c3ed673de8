#!/usr/bin/env bash
# Places where no jail can be made: the start ends, and says all that is missing and what gives it.
. tests/integration/lib.sh

lie() { printf '%s ' "$TESTS/fakes/lying" "$@" --; }
bound() { printf '%s ' setpriv --bounding-set "$1" --inh-caps -all; }
mounts() { printf '%s\n' '#!/bin/sh' 'mount --make-rprivate /' "$1" 'exec "$@"' >"$T/mounts.sh"; }
# refused WHAT CONTAINER REGEX COMMAND...: what stands in front of agentboxd
refused() {
	local what=$1 container=$2 regex=$3
	shift 3
	env container="$container" timeout 30 "$@" "$BIN/agentboxd" --state "$T/state" --socket "$T/sock" >"$T/out" 2>&1
	is "$what: the start ends" $? 111
	like "$what: and names it" "$(cat "$T/out")" "error: $regex"
	like "$what: and a remedy" "$(tail -n 1 "$T/out")" "error: no jail can be made here, in a container of $container, see above; remedy: .*$(remedy "$container")"
	ok "$what: nothing was made" test ! -e "$T/state" -a ! -e "$T/sock"
}
remedy() {
	case $1 in
	docker) echo 'docker run --privileged --cgroupns=private' ;;
	podman) echo 'podman run --privileged --cgroupns=private as root' ;;
	kubernetes) echo 'privileged: true' ;;
	lxc) echo 'lxc.cap.drop=' ;;
	systemd-nspawn) echo 'systemd-nspawn --capability=all' ;;
	esac
}

docker=-all,+chown,+dac_override,+fsetid,+fowner,+mknod,+net_raw,+setgid,+setuid,+setfcap,+setpcap,+net_bind_service,+sys_chroot,+kill,+audit_write
# shellcheck disable=SC2046 # words
{
	refused 'what Docker gives' docker 'CAP_SYS_ADMIN: namespaces' $(bound $docker)
	like 'all of it at once' "$(tr '\n' ' ' <"$T/out")" 'CAP_SYS_PTRACE.*CAP_NET_ADMIN.*namespaces of mounts.*pivot_root'
	refused 'no signals to others' podman 'CAP_KILL' $(bound -kill)
	refused 'no namespaces' podman 'namespaces of networks' $(lie unshare=1)
	refused 'no mounts' lxc 'namespaces of mounts' $(lie mount=1)
	refused 'no new mount calls' lxc 'mounts by descriptor' $(lie fsopen=38)
	refused 'no pivot_root' docker 'pivot_root' $(lie pivot_root=1)
	refused 'no setns' docker 'setns' $(lie setns=1)
	refused 'no clone3' systemd-nspawn 'clone3' $(lie clone3=38)
	refused 'no io_uring' docker 'io_uring' $(lie io_uring_setup=1)
	refused 'no filters' kubernetes 'system call filters' $(lie seccomp=1)
	mounts 'mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys'
	refused '/proc/sys that is read-only' docker '/proc/sys: it is read-only' unshare -m sh "$T/mounts.sh"
	mounts 'mount -t tmpfs t /proc/sys'
	refused '/proc/sys that is masked' kubernetes '/proc/sys: it is masked' unshare -m sh "$T/mounts.sh"
	mounts 'umount -l /proc'
	# (a sanitizer ends without /proc, whatever the program does)
	sanitized || refused 'no /proc' lxc '/proc: it is not mounted' unshare -m sh "$T/mounts.sh"
	refused '/proc of another namespace' lxc '/proc: it is of another PID namespace' unshare --pid --fork
}
# these come later, each with words of its own
mounts 'umount -l /sys/fs/cgroup'
timeout 30 unshare -m sh "$T/mounts.sh" "$BIN/agentboxd" --state "$T/state" --socket "$T/sock" >"$T/out" 2>&1
is 'no cgroup2' $? 111
like 'with its remedy' "$(cat "$T/out")" 'no cgroup2 mount; remedy: mount -t cgroup2'
# whose container, where nobody says
env -u container timeout 30 "$TESTS/fakes/lying" pivot_root=1 -- "$BIN/agentboxd" --state "$T/state2" --socket "$T/sock" >"$T/out" 2>&1
is 'elsewhere' $? 111
like 'there is a remedy, too' "$(tail -n 1 "$T/out")" 'no jail can be made here.*remedy: .*--privileged --cgroupns=private'
ok 'where all of it is there' start_daemon
ok 'a jail can be made' abctl run hello -s u/g -p x
finish
