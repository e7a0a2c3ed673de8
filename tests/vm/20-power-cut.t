#!/usr/bin/env bash
# The power goes while runs are accepted, work and end, several times on one disk.  What clients were told
# until then is known out here, and after each cut the daemon is asked for it.
. tests/integration/lib.sh

rig() { bash tests/vm/rig "$@"; }
cuts=${VM_CUTS:-4}
seed=${SEED:-$(date +%s)}
RANDOM=$seed
echo "# SEED=$seed"

# Blocks of 4 KB in a fresh overlay: what the guest writes and does not flush is lost with QEMU, since the
# overlay's table of them is.
base=$T/base.img
truncate -s 4G "$base"
mke2fs -q -F -t ext4 -E lazy_itable_init=0,lazy_journal_init=0 "$base"
overlay() { qemu-img create -q -f qcow2 -o cluster_size=4k -b "$1" -F "$2" "$3"; }

told() { grep -qs ' run.done ' "$1"; }
# life NAME OVERLAY [MOUNT-OPTION]: cut at a random moment once a run has ended
life() {
	local out=$T/$1 rig_pid
	rig run --timeout 900 --out "$out" --disk "$2" bash tests/vm/inside/power.sh life "${3:-}" >/dev/null 2>"$out.err" &
	rig_pid=$!
	if ! wait_for 180 told "$out/output.log"; then
		tail -n 20 "$out/output.log" "$out.err"
		kill "$rig_pid"
		return 1
	fi
	sleep $((RANDOM % 6)).$((RANDOM % 10))
	kill -9 "$(cat "$out/qemu.pid")"
	wait "$rig_pid"
	[ $? = 125 ] # cut off, not ended
}
after() { # NAME OVERLAY
	rig run --timeout 400 --out "$T/$1" --disk "$2" bash tests/vm/inside/power.sh after
}
check() { # NAME LIFE...
	local name=$1
	shift
	python3 tests/vm/power_check.py "$T/$name/after.json" "${@/#/$T/}"
}

ok 'there is a machine' rig build || finish
lives=()
waited=0
before=$base format=raw
for i in $(seq "$cuts"); do
	overlay "$before" $format "$T/disk$i.qcow2"
	before=$T/disk$i.qcow2 format=qcow2
	ok "cut $i: runs until the power goes" life "life$i" "$before" || finish
	lives+=("life$i/output.log")
	ok "cut $i: it starts again and ends all runs" after "after$i" "$before" || finish
	ok "cut $i: nothing of what was told is lost" check "after$i" "${lives[@]}"
	grep '^# ' "$T/ok.out"
	waited=$((waited + $(sed -n 's/.*of which run \([0-9]*\);.*/\1/p' "$T/ok.out")))
done
ok "runs that waited were run ($waited)" test "$waited" -gt 0

# The same on a disk that nothing is flushed to: the check must see that.
overlay "$before" qcow2 "$T/liar.qcow2"
ok 'a disk that lies: runs until the power goes' life liar "$T/liar.qcow2" barrier=0
ok 'it starts again' after after-liar "$T/liar.qcow2"
ok 'and the loss is seen' not check after-liar "${lives[@]}" liar/output.log
finish
