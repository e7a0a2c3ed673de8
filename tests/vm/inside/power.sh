#!/usr/bin/env bash
# power.sh life|after [MOUNT-OPTION] - in the machine, with the state on the disk that outlives it.
#
#	life	starts runs without end and prints what the clients are told (power.py), until the power goes
#	after	waits until all runs have ended and leaves what the daemon knows in $VM_OUT
set -eu
. tests/vm/inside/daemon.sh

state_disk "${2:-}"
harness short 'cat; mkdir -p out; echo kept >out/kept' 'artifacts: [out/*]'
# shellcheck disable=SC2016 # for the shell in the jail
harness long 'i=0; while [ $i -lt 40 ]; do echo line $i; sleep 0.1; i=$((i+1)); done'
start
[ "$1" = after ] || exec python3 tests/vm/inside/power.py $SOCKET
status=0
python3 tests/vm/inside/power.py $SOCKET "$VM_OUT/after.json" || status=$?
stop || status=$?
umount $STATE
exit $status
