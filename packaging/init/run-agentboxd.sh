#!/bin/sh
# agentboxd without a service manager: for runit, s6, a container's entry point,
# or a line of inittab.  It stays in the foreground and logs to stderr; whoever
# runs this starts it again when it ends with another code than 0.
set -eu

PREFIX=@PREFIX@

# Jails are counted and killed by cgroup v2.  Inside a container it is often mounted read-only.
if ! grep -q ' cgroup2 ' /proc/mounts; then
	mount -t cgroup2 none /sys/fs/cgroup
fi

mkdir -p /run/agentbox /var/lib/agentbox
chmod 755 /run/agentbox
chmod 700 /var/lib/agentbox

# Descriptors: some for each jail.
# shellcheck disable=SC3045 # not in POSIX, and in every sh there is
ulimit -n 524288 2>/dev/null || ulimit -n "$(ulimit -Hn)"

exec "$PREFIX/sbin/agentboxd" "$@"
