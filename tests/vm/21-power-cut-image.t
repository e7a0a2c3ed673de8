#!/usr/bin/env bash
# The power goes while a session's files are copied: from directories into an image, from one image into
# another.  What an agent had synced is there afterwards, in an image without faults, and nothing besides.
. tests/integration/lib.sh
. tests/vm/cuts.sh

cuts=${VM_CUTS:-3}
seed=${SEED:-$(date +%s)}
RANDOM=$seed
echo "# SEED=$seed"

# Each user has been told of a file, and one more copy has begun
told() { [ "$(awk '$1 == "K" { print $2 }' "$1" | sort -u | wc -l)" = 3 ]; }
copying() { [ "$(awk '$1 == "C" { s = $2 } END { print s }' "$1")" = begin ]; }
# life NUMBER OVERLAY [MOUNT-OPTION]: cut at a random moment of a copy
life() {
	begin "life$1" "$2" tests/vm/inside/images.sh life "$1" "${3:-}"
	wait_for 300 told "$T/life$1/output.log" || gave_up "life$1" || return 1
	sleep $((RANDOM % 10)).$((RANDOM % 10))
	wait_for 60 copying "$T/life$1/output.log" || gave_up "life$1" || return 1
	sleep 0.$((RANDOM % 10))
	cut "life$1"
}
look() { after "$1" "$2" tests/vm/inside/images.sh after; }
check() { # NAME LIFE...
	local name=$1
	shift
	python3 tests/vm/images_check.py "$T/$name/after.json" "${@/#/$T/}"
}

ok 'there is a machine' rig build || finish
disk_base
lives=()
middle=0
before=$BASE format=raw
for i in $(seq "$cuts"); do
	overlay "$before" $format "$T/disk$i.qcow2"
	before=$T/disk$i.qcow2 format=qcow2
	ok "cut $i: copies until the power goes" life "$i" "$before" || finish
	lives+=("life$i/output.log")
	! copying "$T/life$i/output.log" || middle=$((middle + 1))
	is "cut $i: no run had failed before" "$(grep '^F' "$T/life$i/output.log")" ''
	ok "cut $i: it starts again" look "after$i" "$before" || finish
	ok "cut $i: nothing that was synced is lost" check "after$i" "${lives[@]}"
	grep '^# ' "$T/ok.out"
	is "cut $i: images without faults, and nothing else is left" "$(cat "$T/after$i/left")" ''
done
ok "the power went in the middle of a copy ($middle)" test "$middle" -gt 0

# The same on a disk that nothing is flushed to: the check must see that.
overlay "$before" qcow2 "$T/liar.qcow2"
liar=$((cuts + 1))
ok 'a disk that lies: copies until the power goes' life $liar "$T/liar.qcow2" barrier=0
ok 'it starts again' look after-liar "$T/liar.qcow2"
ok 'and the loss is seen' not check after-liar "${lives[@]}" life$liar/output.log
finish
