#!/usr/bin/env bash
# A disk that does not answer holds up the sessions whose files are on it, and nobody else: the state
# is on a file system that is frozen, so that whoever writes to it waits until it is thawed and cannot
# be killed.  What the supervisor keeps is on another one.  In a mount namespace of the test's own.
if [ "${1:-}" != inside ] && [ "$(id -u)" = 0 ]; then
	exec unshare --mount --propagation private -- bash "$0" inside
fi
. tests/integration/lib.sh
for tool in mkfs.ext4 fsfreeze; do
	command -v $tool >/dev/null || skip_all "needs $tool"
done

frozen=
freeze() { fsfreeze -f "$T/state" && frozen=1; }
thaw() {
	[ -z "$frozen" ] || fsfreeze -u "$T/state"
	frozen=
}
_leave() {
	thaw
	[ -z "$DAEMON" ] || stop_daemon KILL
	umount "$T/state/supervisor" "$T/state" 2>/dev/null
	_at_exit
}
trap _leave EXIT

mkdir -p "$T/state" "$T/etc/policy" "$T/etc/harnesses" "$T/supervisor"
truncate -s 4G "$T/disk"
mkfs.ext4 -q -m 0 "$T/disk" && mount -o loop "$T/disk" "$T/state" || skip_all 'no loop devices'
chmod 700 "$T/state"
policy() { printf 'extends: default\n%s\n' "$2" >"$T/etc/policy/$1.yaml"; }
harness() { printf -- '---\nbackend: exec\npolicy: %s\ncommand: [sh, -c, %s]\n---\n' "$2" "$3" >"$T/etc/harnesses/$1.md"; }
policy held 'limits: { disk: 32M }'
harness plain default "'echo plain'"
harness held held "'echo held'"
harness fill held "'dd if=/dev/zero of=f bs=1M count=24'"
harness wait held "'echo up; sleep 1000'"
: >"$T/etc/agentboxd.yaml"

# the supervisor's directory as agentboxd makes it, and then on the disk that answers
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
abctl doctor --json | json 'l.layers.find(x=>x.layer==="limit.disk").detail' | grep -q '^image' || skip_all 'sessions have no images here'
stop_daemon
cp -a "$T/state/supervisor/." "$T/supervisor"
chown --reference="$T/state/supervisor" "$T/supervisor"
chmod --reference="$T/state/supervisor" "$T/supervisor"
mount --bind "$T/supervisor" "$T/state/supervisor"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }

# A bound for what takes milliseconds, generous to a busy machine: the disk is frozen for longer.
SOON=20
soon() { timeout "$SOON" "$BIN/abctl" --socket "$T/sock" "$@"; }
status() { soon show "$1" --json | json l.status; }
is_status() { [ "$(status "$1")" = "$2" ]; }
begin() { soon run "$1" -s "u/$2" -p x --detach --json | json l.runId; }
jobs() { pgrep -P "$DAEMON" -x agentbox-job | wc -l; }
has_jobs() { [ "$(jobs)" -ge "$1" ]; }
said() { soon logs "$1" --json | grep -q '"agent.message"'; }

ok 'a session with an image' abctl run fill -s u/full -p x
ok 'one without a limit' abctl run plain -s u/old -p x
living=$(begin wait living)
ok 'one that runs' wait_for 20 said "$living"
ok 'the disk does not answer' freeze

held=$(begin held new1)
plain=$(begin plain new2)
full=$(begin held full)
ok 'three sessions wait for it, each with a child of its own' wait_for 20 has_jobs 3
like 'jails that have no files there start' "$(soon jail -- echo alive)" alive
ok 'what runs is ended' soon cancel "$living"
ok 'at once' wait_for "$SOON" is_status "$living" cancelled
like 'and again' "$(soon jail -- echo alive)" alive
is 'the three are not done' "$(status "$held") $(status "$plain") $(status "$full")" 'running running running'

# their children are killed with the supervisor that asked, and cannot go
supervisor=$(child_pid agentbox-supervisor)
kill -KILL "$supervisor"
ok 'another supervisor' wait_for "$SOON" soon version
like 'serves jails' "$(soon jail -- echo alive)" alive
ok 'while the children are there' has_jobs 3
abctl session rm u/old >"$T/rm.out" 2>&1 &
rm=$!
ok 'a session is deleted, by a child too' wait_for 20 has_jobs 4
abctl reload >"$T/reload.out" 2>&1 &
reload=$!
ok 'policies are read again, by one more' wait_for 20 has_jobs 5
like 'jails start' "$(soon jail -- echo alive)" alive
ok 'neither is done' sh -c "kill -0 $rm && kill -0 $reload"
thaw
for run in "$held" "$plain" "$full"; do
	ok 'thawed: what waited goes on' wait_for 60 is_status "$run" succeeded
done
wait $rm
is 'the session is deleted' "$?" 0
wait $reload
is 'and policies are read' "$?" 0
no_jobs() { [ "$(jobs)" = 0 ]; }
ok 'no child is left' wait_for 20 no_jobs

# one that has to wait for it too long: what is in use stays, and the next one has to wait for it
policy more 'limits: { pids: 100 }'
has_more() { abctl policy ls --json | grep -q '"more"'; }
ok 'the disk does not answer again' freeze
abctl reload >"$T/reload.out" 2>&1 &
reload=$!
ok 'policies are read again' wait_for 20 has_jobs 1
like 'jails start' "$(soon jail -- echo alive)" alive
wait $reload
is 'that ends without it' $? 111
like 'with the step that hangs' "$(cat "$T/reload.out")" 'the policies in use stay: trying the [a-z ]* has not ended within 60 s; the disk'
ok 'which are in use' not has_more
ok 'it is a child of its own still' has_jobs 1
soon reload >"$T/reload.out" 2>&1
is 'another is refused' $? 100
like 'for that' "$(cat "$T/reload.out")" 'in a reload before has not ended'
like 'jails start as ever' "$(soon jail -- echo alive)" alive
thaw
ok 'thawed: it ends' wait_for 20 no_jobs
ok 'unused' not has_more
ok 'and another is done' abctl reload
ok 'with what was changed' has_more

# a command that prints a secret and takes its time, and a child of ours that is stopped
printf '#!/bin/sh\nsleep 4\necho value\n' >"$T/slow-secret"
chmod 755 "$T/slow-secret"
printf 'secrets:\n  SLOW: { command: ["%s"] }\n' "$T/slow-secret" >"$T/etc/agentboxd.yaml"
abctl reload >"$T/reload.out" 2>&1 &
reload=$!
ok 'a reload waits for a command' wait_for 20 has_jobs 1
pkill -STOP -P "$DAEMON" -x agentbox-job
like 'jails start' "$(soon jail -- echo alive)" alive
run=$(begin held new3)
ok 'and runs whose files have limits' wait_for "$SOON" is_status "$run" succeeded
ok 'the reload is not done' kill -0 $reload
pkill -CONT -P "$DAEMON" -x agentbox-job
wait $reload
is 'it is when its child goes on' "$?" 0
ok 'no child is left' wait_for 20 no_jobs
stop_daemon
is 'it stops as ever' $? 0
finish
