#!/usr/bin/env bash
# As tests/integration/47-disk.t, where the state is on a file system that counts projects, which takes
# a kernel that can.  In a mount namespace of the test's own.
if [ "${1:-}" != inside ] && [ "$(id -u)" = 0 ]; then
	exec unshare --mount --propagation private -- bash "$0" inside
fi
. tests/integration/lib.sh
WANT=quota
MANY=20 # an emulated processor
truncate -s 3G "$T/fs"
mkdir -m 700 "$T/state"
mke2fs -q -F -t ext4 -O quota,project -E quotatype=prjquota "$T/fs" || skip_all 'mke2fs makes no project quota'
mount -t ext4 -o loop,prjquota "$T/fs" "$T/state" || skip_all 'this kernel has no project quota'
trap '[ -z "$DAEMON" ] || stop_daemon KILL; umount -l "$T/state"; _at_exit' EXIT
. tests/integration/disk.sh
finish
