# shellcheck shell=bash
# state.sh - tests/integration/47-disk.t's checks with the state on another file system, sourced by tests:
#
#	MEANS=quota FS=ext4 OPTIONS=prjquota	what sessions must be held by, and on what
#	make_fs() { mke2fs ... "$1"; }
#	. tests/vm/inside/state.sh
#
# In a mount namespace of the test's own.
if [ "${1:-}" != inside ] && [ "$(id -u)" = 0 ]; then
	exec unshare --mount --propagation private -- bash "$0" inside
fi
. tests/integration/lib.sh
truncate -s 3G "$T/fs"
mkdir -m 700 "$T/state"
make_fs "$T/fs" || skip_all "no $FS can be made here"
mount -t "$FS" -o "loop,$OPTIONS" "$T/fs" "$T/state" || skip_all "this kernel has no $FS with $OPTIONS"
trap '[ -z "$DAEMON" ] || stop_daemon KILL; umount -l "$T/state"; _at_exit' EXIT
WANT=$MEANS
MANY=20 # an emulated processor
. tests/integration/disk.sh
finish
