# shellcheck shell=bash
# What must hold for sessions with limits of bytes and files, whatever holds them: sourced after lib.sh
# by the tests of images and of project quota.  $WANT is the means that the host should have chosen,
# $MANY how many runs go through at the end, a multiple of four.

mkdir -p "$T/etc/policy" "$T/etc/harnesses"
policy() { printf 'extends: default\n%s\n' "$2" >"$T/etc/policy/$1.yaml"; }
harness() { printf -- '---\nbackend: exec\npolicy: %s\ncommand: [sh, -c, %s]\n%s\n---\n' "$2" "$3" "${4:-}" >"$T/etc/harnesses/$1.md"; }
policy none 'limits: { memory: 4G }'
policy small 'limits: { disk: 64M, inodes: 400 }'
policy large 'limits: { disk: 192M, inodes: 400 }'
policy many 'limits: { disk: 64M, inodes: 2000 }'
policy must 'limits: { disk: 64M }
layers: { limit.disk: require }'
policy huge 'limits: { disk: 900T }'
harness fill small "'dd if=/dev/zero of=big bs=1M count=100 2>&1; sleep 0.6; wc -c <big'" 'artifacts: [big]'
harness odd small "'head -c 300000 /dev/zero >first; dd if=/dev/zero of=big bs=1M count=100 2>&1; cat first big | wc -c'"
harness nearly small "'dd if=/dev/zero of=big bs=1M count=63 2>&1; sleep 0.6; wc -c <big'"
harness filllarge large "'dd if=/dev/zero of=big bs=1M count=300 2>&1; wc -c <big'"
# XFS may refuse the file, too: it makes inodes 64 at a time.
harness more small "'dd if=/dev/zero of=more bs=1M count=9 2>/dev/null; cat big | wc -c | tr \"\\\\n\" \" \"; cat more 2>/dev/null | wc -c'"
harness shrink small "'rm big more; sleep 1; dd if=/dev/zero of=big bs=1M count=100 2>&1; wc -c <big'"
harness narrow large "'dd if=/dev/zero of=big bs=1M count=300 2>&1; wc -c <big'" 'limits: { disk: 32M }'
harness home small "'rm -f big; dd if=/dev/zero of=\$HOME/big bs=1M count=100 2>&1; wc -c <\$HOME/big'"
harness both small "'dd if=/dev/zero of=\$HOME/a bs=1M count=50; dd if=/dev/zero of=b bs=1M count=50; cat \$HOME/a b | wc -c'"
harness names small "'i=0; while [ \$i -lt 3000 ] && touch f\$i; do i=\$((i+1)); done; echo \$i; sleep 0.6'"
harness manynames many "'i=0; while [ \$i -lt 3000 ] && touch g\$i; do i=\$((i+1)); done; ls | wc -l'"
harness clean small "'rm -rf -- *; rm -rf \$HOME/*; echo \$(ls | wc -l)'"
harness true small "'echo here'"
harness look none "'cat mark'"
harness see small "'cat mark sub/deeper/mark; stat -c %a sub; readlink link; ls -l \$HOME | wc -l; stat -c %h hard'"
harness make none "'echo old >mark; mkdir -p sub/deeper; chmod 751 sub; echo deep >sub/deeper/mark; ln -s mark link; echo x >hard; ln hard hard2; touch \$HOME/h'" 'workspace: { seed: { "s.txt": "seeded" } }'
harness wait small "'echo up; sleep 1000'"
harness must must "'echo held'"
harness huge huge "'echo too much'"
: >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
have=$(abctl doctor --json | json 'l.layers.find(x=>x.layer==="limit.disk").have')
[ "$have" = yes ] || skip_all 'neither project quota nor images by loop device'
method=$(abctl doctor --json | json 'l.layers.find(x=>x.layer==="limit.disk").detail.split(":")[0]')
is 'what holds sessions' "$method" "$WANT"

run() { abctl run "$1" -s "u/$2" -p x --json >"$T/out" 2>"$T/err"; }
result() { json "l.result.$1" <"$T/out"; }
event() { json "e.filter(x=>x.type==='limit.hit'&&/disk|inodes/.test(x.limit)).map(x=>x.limit+'='+x.value).join()" <"$T/out"; }
left() { json "e.find(x=>x.type==='limit.hit'&&x.limit==='disk').left" <"$T/out"; }
started() { json "e.find(x=>x.type==='run.started').$1" <"$T/out"; }
last() { result 'finalText.split("\n").pop()'; }
session() { json l.session <"$T/out"; }
# Never more; and less by no more than directories take and one write, which a kernel may refuse as a whole.
about() { [ "$1" -ge $(($2 - $2 / 128 - 1048576)) ] && [ "$1" -le "$2" ]; }
loops() { cat /sys/block/loop*/loop/backing_file 2>/dev/null | grep -c "^$T/state/"; }
no_loops() { [ "$(loops)" = 0 ]; }
# The devices of this daemon's images as mountinfo names them.
devices() { for f in /sys/block/loop*/loop/backing_file; do grep -q "^$T/state/" "$f" 2>/dev/null && echo "/dev/$(echo "$f" | cut -d/ -f4)"; done; }
mounted_there() { abctl exec "$1" -- cat /proc/self/mountinfo >"$T/mountinfo" && devices | grep -Fwf - "$T/mountinfo"; }
mounted_here() { devices | grep -Fwf - /proc/self/mountinfo "/proc/$DAEMON/mountinfo"; }
free_mib() { df -Pm "$T/state" | awk 'NR == 2 { print $4 }'; }

free=$(free_mib)
run fill a
is 'a run that fills its disk goes on' "$(result status)" succeeded
like 'it was refused' "$(result finalText)" 'No space left|Disk quota exceeded'
ok "at the limit ($(last) bytes)" about "$(last)" 67108864
is 'which is told, once' "$(event)" disk=67108864
is 'what holds it is in the record' "$(started disk)" "$method"
is 'and the layer' "$(result 'layers.includes("limit.disk")')" true
ok 'the peak is the limit' about "$(result resources.diskPeakBytes)" 67108864
is 'what it wrote is an artifact' "$(result 'artifacts[0].path')" big
ok 'the host has lost not much more than that' test "$((free - $(free_mib)))" -lt 2000
first=$(session)
put() { # BYTES NAME: by a client, while no run goes on
	head -c "$1" /dev/zero | abctl session cp - "$first:$2" 2>&1
}
disk() { abctl session show "$first" --json | json "l.disk.$1"; }
is 'the session says what it may have' "$(disk limitBytes) $(disk limitInodes) $(disk policy)" '67108864 400 small'
ok 'and what it was seen to have' about "$(disk peakBytes)" 67108864
like 'a file that does not fit is refused' "$(put 9000000 more)" 'limit of disk or files is met'
is 'and leaves nothing' "$(abctl session ls "$first" --json | json 'l.entries.map(x=>x.name).join()')" big
ok 'a client may make room' abctl session rm "$first" big
is 'for it' "$(put 9000000 more) $(abctl session cp "$first:more" - | wc -c)" ' 9000000'
run clean a
run odd a
ok 'where the last write does not fit' about "$(last)" 67108864
is 'it is told, too' "$(event)" disk=67108864
ok "with what is left, which is less than that write ($(left))" test "$(left)" -le 2162688
run clean a
run nearly a
is 'where no write has failed' "$(last)" 66060288
ok "what is told has bytes left ($(left))" test "$(left)" -gt 0 -a "$(left)" -le 2162688
like 'and is not called full' "$(abctl logs "$(result runId)" 2>&1)" 'limit nearly reached: disk, [0-9.]+ [kM]B left'
run clean a
run fill a
run home a
ok 'home is counted with the workspace, and a later run sees the same limit' about "$(last)" 67108864
run clean a
is 'room is given back' "$(last)" 0
run both a
ok 'both together are the limit' about "$(last)" 67108864
run clean a
run names a
ok "files end at their number ($(last))" test "$(last)" -ge 380 -a "$(last)" -le 430
is 'which is told, once' "$(event)" inodes=400
ok 'and the peak' test "$(result resources.inodesPeak)" -ge 380
run clean a

# other limits on the same session
run filllarge a
ok 'a larger limit holds at once' about "$(last)" 201326592
run more a
was=$(result 'finalText.split(" ")[0]')
ok 'below what there is nothing is lost' about "$was" 201326592
is 'and nothing more can be written' "$(result finalText)" "$was 0"
run shrink a
ok 'and when there is less it holds again' about "$(last)" 67108864
run clean a
run narrow a
ok 'a harness may take less' about "$(last)" 33554432
run clean a
run manynames a
ok "more files than before ($(last))" test "$(last)" -ge 1980 -a "$(last)" -le 2100
run clean a
abctl exec "$first" -- sh -c 'echo kept >mark; mkdir sub; echo in >sub/f' || true
run names a
is 'fewer files: what is there stays' "$(abctl exec "$first" -- cat mark sub/f | tr '\n' ' ')" 'kept in '

# one that is older than its limit
run make old
is 'a session without a limit' "$(started 'layers.includes("limit.disk")')" false
old=$(session)
run see old
is 'gets one at its next run' "$(started 'layers.includes("limit.disk")')" true
is 'with all its files as they were' "$(result 'finalText.split("\n").join(" ")')" 'old deep 751 mark 2 2'
run fill old
ok 'and it holds' test "$(last)" -le 67108864
run look old
is 'without a limit again it still has its files' "$(result finalText)" old
abctl exec "$old" -- sh -c 'cat s.txt' >"$T/seed"
is 'the seed is there once' "$(cat "$T/seed")" seeded

# refused rather than half held
run must m
is 'required and there' "$(result status)" succeeded
run huge h
like 'a promise that the host cannot keep is refused' "$(result error)" 'layer limit.disk: .* MiB free'
is 'before anything is started' "$(result status)" failed

# two jails
abctl run wait -s u/beside -p x --detach --json >"$T/beside"
beside=$(json 'l.runId' <"$T/beside")
ok 'a second jail' wait_for 20 sh -c "$BIN/abctl --socket $T/sock logs $beside --json | grep -q agent.message"
run fill c
ok 'while one is full' about "$(last)" 67108864
ok 'the other has all its room' abctl exec "$(json l.sessionId <"$T/beside")" -- sh -c 'dd if=/dev/zero of=f bs=1M count=40 && rm f'
is 'nothing of it is mounted outside of jails' "$(mounted_here)" ''
about_disks() { cat /proc/partitions; find /proc/fs; } 2>/dev/null
ok 'the host sees what disks there are' test "$(about_disks | wc -l)" -gt 3
is 'a third jail does not, nor how they are used' "$(abctl jail -- sh -c "$(declare -f about_disks); about_disks" 2>/dev/null)" /proc/fs

# a daemon that is killed
if [ "$method" = image ]; then
	ok 'a living session has its device' test "$(loops)" -ge 1
	inside=$(json l.sessionId <"$T/beside")
	ok 'which is mounted in its jail' wait_for 10 mounted_there "$inside"
fi
stop_daemon KILL
ok 'killed: no process is left' wait_for 10 no_jail_processes
ok 'no loop device' wait_for 10 no_loops
start_daemon --config "$T/etc/agentboxd.yaml"
run clean c
is 'the next daemon has the session' "$(result status)" succeeded

# deleting
dir=$(readlink "$T/state/sessions/$first")
ok 'its files are there' test -d "$T/state/sessions/$dir"
abctl session rm "$first" >/dev/null
ok 'deleted: its files go' wait_for 10 sh -c "! ls $T/state/sessions $T/state/trash | grep -q -e $first -e $dir"

# many
fds() { find "/proc/$DAEMON/fd" | wc -l; }
settled() { [ "$(loops)" = 0 ] && [ "$(fds)" = "$before" ]; }
run true many0
wait_for 10 no_loops
sleep 1
before=$(fds)
ok "$MANY runs" bash -c '
	for i in $(seq "$2"); do
		for k in 1 2 3 4; do
			"$0" --socket "$1" run true -s "u/many$((i % 10)).$k" -p x --json | tail -n 1 | grep -q "\"status\":\"succeeded\"" || echo "$i.$k" >>"$1.failed" &
		done
		wait
	done
	! test -e "$1.failed"' "$BIN/abctl" "$T/sock" $((MANY / 4))
ok 'leave no device and no descriptor' wait_for 15 settled
stop_daemon
ok 'stopped: no device' wait_for 5 no_loops
