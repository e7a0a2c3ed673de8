#!/usr/bin/env bash
# The power goes while runs are accepted, work and end, several times on one disk.  What clients were told
# until then is known out here, and after each cut the daemon is asked for it.
. tests/integration/lib.sh
. tests/vm/cuts.sh

cuts=${VM_CUTS:-4}
seed=${SEED:-$(date +%s)}
RANDOM=$seed
echo "# SEED=$seed"

told() { grep -qs ' run.done ' "$1"; }
# life NAME OVERLAY [MOUNT-OPTION]: cut at a random moment once a run has ended
life() {
	begin "$1" "$2" tests/vm/inside/power.sh life "${3:-}"
	wait_for 180 told "$T/$1/output.log" || gave_up "$1" || return 1
	sleep $((RANDOM % 6)).$((RANDOM % 10))
	cut "$1"
}
look() { after "$1" "$2" tests/vm/inside/power.sh after; }
check() { # NAME LIFE...
	local name=$1
	shift
	python3 tests/vm/power_check.py "$T/$name/after.json" "${@/#/$T/}"
}

ok 'there is a machine' rig build || finish
disk_base
lives=()
waited=0
before=$BASE format=raw
for i in $(seq "$cuts"); do
	overlay "$before" $format "$T/disk$i.qcow2"
	before=$T/disk$i.qcow2 format=qcow2
	ok "cut $i: runs until the power goes" life "life$i" "$before" || finish
	lives+=("life$i/output.log")
	ok "cut $i: it starts again and ends all runs" look "after$i" "$before" || finish
	ok "cut $i: nothing of what was told is lost" check "after$i" "${lives[@]}"
	grep '^# ' "$T/ok.out"
	waited=$((waited + $(sed -n 's/.*of which run \([0-9]*\);.*/\1/p' "$T/ok.out")))
done
ok "runs that waited were run ($waited)" test "$waited" -gt 0

# The same on a disk that nothing is flushed to: the check must see that.
overlay "$before" qcow2 "$T/liar.qcow2"
ok 'a disk that lies: runs until the power goes' life liar "$T/liar.qcow2" barrier=0
ok 'it starts again' look after-liar "$T/liar.qcow2"
ok 'and the loss is seen' not check after-liar "${lives[@]}" liar/output.log
finish
