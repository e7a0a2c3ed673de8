#!/usr/bin/env bash
# power.sh life|after [MOUNT-OPTION] - in the machine, with the state on the disk that outlives it.
#
#	life	starts runs without end and prints what the clients are told (power.py), until the power goes
#	after	waits until all runs have ended and leaves what the daemon knows in $VM_OUT
set -eu

state=/var/lib/agentbox
mkdir -p $state /etc/agentbox/harnesses
mount -o "noatime${2:+,$2}" "$VM_DISK" $state
# The saved state has booted once and is restored each time; by its boot id a power cut is known.
cat /proc/sys/kernel/random/uuid >/run/boot_id
mount --bind /run/boot_id /proc/sys/kernel/random/boot_id
cat >/etc/agentbox/agentboxd.yaml <<'Y'
runs: { max: 3 }
harness_dirs: [ /etc/agentbox/harnesses ]
Y
cat >/etc/agentbox/harnesses/short.md <<'M'
---
backend: exec
command: [sh, -c, "cat; mkdir -p out; echo kept >out/kept"]
artifacts: [out/*]
---
M
cat >/etc/agentbox/harnesses/long.md <<'M'
---
backend: exec
command: [sh, -c, "i=0; while [ $i -lt 40 ]; do echo line $i; sleep 0.1; i=$((i+1)); done"]
---
M
"$BIN/agentboxd" --state $state/state --socket /run/power.sock 2>"$VM_OUT/agentboxd.log" &
daemon=$!
for _ in {1..600}; do
	"$BIN/abctl" --socket /run/power.sock version >/dev/null 2>&1 && break
	sleep 0.1
done
if [ "$1" = life ]; then
	exec python3 tests/vm/inside/power.py /run/power.sock
fi
status=0
python3 tests/vm/inside/power.py /run/power.sock "$VM_OUT/after.json" || status=$?
kill $daemon
wait $daemon || status=$?
umount $state
exit $status
