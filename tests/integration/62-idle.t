#!/usr/bin/env bash
# A daemon with nothing to do sleeps: no process of it wakes up, and none has grown large.
. tests/integration/lib.sh

start_daemon || { echo "not ok 1 - start"; echo 1..1; exit 1; }
ok 'a jail' abctl jail -- true
ok 'a run' abctl run hello -s u/g -p x --json

# How often its threads went to sleep so far: who sleeps once and stays asleep adds nothing.
sleeps() {
	local p
	for p in "$DAEMON" $(pgrep -P "$DAEMON"); do
		cat /proc/"$p"/task/*/status
	done | awk '/^voluntary_ctxt_switches/ { n += $2 } END { print n }'
}
quiet() {
	local before
	before=$(sleeps)
	sleep 2
	[ "$(sleeps)" = "$before" ]
}
ok 'agentboxd and its children sleep when there is nothing to do' wait_for 1 quiet

# Four processes with 6 MB that are theirs alone when this was written.
kilobytes() {
	local p
	for p in "$DAEMON" $(pgrep -P "$DAEMON"); do
		cat "/proc/$p/smaps_rollup"
	done | awk '/^Pss_Anon:/ { n += $2 } END { print n }'
}
small() { [ "$(kilobytes)" -lt 32768 ]; }
if ! sanitized; then
	ok 'and have little memory of their own' small
fi
finish
