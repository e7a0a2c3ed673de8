# shellcheck shell=bash
# cuts.sh - for tests that cut a machine's power: disks, lives and what is asked after them.  After lib.sh.
#
#	disk_base			sets BASE: an empty ext4
#	overlay BELOW FORMAT FILE	a fresh disk on top of another
#	begin NAME OVERLAY SCRIPT...	a machine that runs until the power goes; sets RIG
#	cut NAME
#	after NAME OVERLAY SCRIPT...

rig() { bash tests/vm/rig "$@"; }

# A fresh overlay, of which each 4 KB are noted by themselves (a 32nd of a cluster): what the guest writes and
# does not flush is lost with QEMU, since the note is.  One table has the notes of 1 GB.  With small
# clusters there is one for each 2 MB, and each new one has QEMU write all the others.
disk_base() {
	BASE=$T/base.img
	truncate -s 4G "$BASE"
	mke2fs -q -F -t ext4 -E lazy_itable_init=0,lazy_journal_init=0 "$BASE"
}
overlay() { qemu-img create -q -f qcow2 -o extended_l2=on,cluster_size=128k -b "$1" -F "$2" "$3"; }

begin() {
	local out=$T/$1 disk=$2
	shift 2
	rig run --timeout 900 --out "$out" --disk "$disk" bash "$@" >/dev/null 2>"$out.err" &
	RIG=$!
}
cut() { # the rig says that it was cut off, not ended
	kill -9 "$(cat "$T/$1/qemu.pid")"
	wait "$RIG"
	[ $? = 125 ]
}
gave_up() { # NAME: shows why
	tail -n 20 "$T/$1/output.log" "$T/$1.err"
	kill "$RIG"
	return 1
}
after() {
	local out=$T/$1 disk=$2
	shift 2
	rig run --timeout 400 --out "$out" --disk "$disk" bash "$@"
}
