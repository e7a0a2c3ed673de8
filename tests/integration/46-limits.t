#!/usr/bin/env bash
# Each limit of a policy does what it says.  A test declares the layer it needs: where the host has
# no such controller the limit cannot be in force, and the test says so instead.
. tests/integration/lib.sh

mkdir -p "$T/etc/policy" "$T/etc/harnesses"
policy() { printf 'extends: default\nlimits: { %s }\n' "$2" >"$T/etc/policy/$1.yaml"; }
harness() { printf -- '---\nbackend: exec\npolicy: %s\ncommand: [sh, -c, %s]\n---\n' "$2" "$3" >"$T/etc/harnesses/$1.md"; }
policy memory 'memory: 64M, tmp: 256M'
policy pids 'pids: 24'
policy cpu 'cpus: 0.5'
policy io 'io: { read: 2M, write: 2M }'
policy sizes 'tmp: 2M, shm: 1M, disk: 3M, inodes: 100, nofile: 80, file: 1M'
policy wall 'wall: 1s'
policy stopped 'wall: 30s'
policy output 'output: 64k'
harness memory memory "'head -c 300000000 /dev/zero | tail -c 299999999 | wc -c; echo survived'"
harness tmpfs memory "'head -c 200000000 /dev/zero >/tmp/f; echo survived'"
harness modest memory "'head -c 20000000 /dev/zero | tail -c 19999999 | wc -c'"
harness cpu cpu "'for i in 1 2; do (while :; do :; done) & done; sleep 4; kill \$!; kill %1 2>/dev/null; echo done'"
harness write io "'dd if=/dev/zero of=f bs=1M count=8 oflag=direct 2>&1 && echo written'"
harness wall wall "'sleep 100'"
harness stopped stopped "'exec sleep 1001'"
harness output output "'head -c 10000000 /dev/zero | tr \"\\\\0\" x; sleep 100'"
harness pids pids "'i=0; while [ \$i -lt 60 ]; do sleep 20 & i=\$((i+1)); done; echo all'"
: >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
have=$(abctl doctor --json | json 'l.layers.filter(x=>x.have==="yes").map(x=>x.layer).join(" ")')
run() { abctl run "$1" -s "u/$1" -p x --json >"$T/out" 2>"$T/err"; }
result() { json "l.result.$1" <"$T/out"; }
jail() { abctl jail --policy "$@" 2>"$T/err"; }

# needs LAYER N: false after saying N times that it is not here
needs() {
	local i
	case " $have " in *" limit.$1 "*) return 0 ;; esac
	for i in $(seq "$2"); do
		count=$((count + 1))
		echo "ok $count # SKIP host has no $1 controller"
	done
	return 1
}

if needs memory 9; then
	abctl run modest -s u/beside -p x --json >"$T/beside" 2>&1 &
	beside=$!
	run memory
	is 'more memory than the limit ends as oom' "$(result status)" oom
	like 'with its event' "$(cat "$T/out")" '"type":"limit.hit".*"memory"'
	ok 'the whole jail ended' not grep -q survived "$T/out"
	ok 'the peak was at the limit' test "$(result resources.memoryPeakBytes)" -le 70000000
	is 'the layer is in the record' "$(result 'layers.includes("limit.memory")')" true
	wait $beside
	is 'another jail goes on' "$(json l.result.status <"$T/beside")" succeeded
	run tmpfs
	is 'files in /tmp are memory too' "$(result status)" oom
	run modest
	is 'below the limit nothing happens' "$(result status)" succeeded
	jail memory -- sh -c 'head -c 300000000 /dev/zero | tail -c 299999999'  >"$T/jail.out"
	is 'a jail of abctl ends by SIGKILL' $? 137
fi

# without the controller RLIMIT_NPROC stands in
run pids
ok 'processes are bounded' not grep -q '"text":"all' "$T/out"
like 'the refusal is EAGAIN' "$(cat "$T/out")" 'annot fork|temporarily unavailable'
is 'a jail as inner root is bounded too' "$(jail pids --user root -- sh -c 'i=0; while [ $i -lt 60 ]; do sleep 5 & i=$((i+1)); done; echo all' | grep -c all)" 0
is 'and so are threads of an abctl jail' "$(jail pids -- sh -c '(i=0; while [ $i -lt 60 ]; do sleep 5 & i=$((i+1)); done; echo all)' | grep -c all)" 0
if needs pids 1; then
	run pids
	is 'the layer is in the record' "$(result 'layers.includes("limit.pids")')" true
fi

if needs cpu 2; then
	run cpu
	is 'two busy loops on half a processor' "$(result status)" succeeded
	ok "get half of one ($(result resources.cpuMs) ms in 4 s)" test "$(result 'resources.cpuMs|0')" -le 2800
fi

if needs io 3; then
	start=$(date +%s%N)
	run write
	ms=$((($(date +%s%N) - start) / 1000000))
	like '8 MiB written past the cache' "$(cat "$T/out")" written
	ok "at 2 MiB a second take their time (${ms} ms)" test "$ms" -ge 2500
	is 'the layer is in the record' "$(result 'layers.includes("limit.io")')" true
fi

# no controller is needed from here on
fill() { jail sizes -- sh -c "dd if=/dev/zero of=$1/a bs=64k count=15; dd if=/dev/zero of=$1/b bs=64k count=15; dd if=/dev/zero of=$1/c bs=64k count=15; dd if=/dev/zero of=$1/d bs=64k count=15; cat $1/? | wc -c"; }
is '/tmp ends at its size' "$(fill /tmp)" 2097152
like 'with ENOSPC' "$(cat "$T/err")" 'No space left'
is '/dev/shm ends at its size' "$(fill /dev/shm)" 1048576
is 'the workspace of a jail ends at its size' "$(fill /workspace)" 3145728
is 'files of a workspace are counted' "$(jail sizes -- sh -c 'i=0; while [ $i -lt 200 ] && touch f$i; do i=$((i+1)); done; ls | wc -l')" 99
is 'descriptors end at their number' "$(jail sizes -- sh -c 'ulimit -Hn')" 80
is 'and cannot be raised' "$(jail sizes -- sh -c 'ulimit -n 81 2>/dev/null || echo no')" no
is 'a file ends at its size' "$(jail sizes -- sh -c 'dd if=/dev/zero of=f bs=64k count=30 2>/dev/null; wc -c <f')" 1048576
run wall
is 'the longest run' "$(result status)" timeout
like 'with its event' "$(cat "$T/out")" '"type":"limit.hit".*"wall"'
ok 'in its time' test "$(result durationMs)" -lt 5000
# A PID 1 that cannot report: its program ends, which nobody tells.
pids_of() { jail_processes | awk -v what="$1" 'index($0, what) { print $2 }'; }
both() { [ -n "$(pids_of 'sleep 1001')" ] && [ -n "$(pids_of 'sleep 1002')" ]; }
run stopped &
running=$!
abctl jail --policy stopped -- sleep 1002 >"$T/jail" 2>&1 &
jailed=$!
ok 'a run and a command of a client' wait_for 60 both || sed 's/^/# /' "$T/out" "$T/jail"
mapfile -t first < <(pgrep -P "$DAEMON" -f agentbox-init)
mapfile -t programs < <(pids_of 'sleep 100')
ok 'whose PID 1 are stopped' kill -STOP "${first[@]}"
ok 'before their programs end' kill -9 "${programs[@]}"
wait "$running"
is 'the longest time ends a run whose PID 1 is stopped' "$(result status) $(result exit.reason)" 'timeout timeout'
ok 'in its time' test "$(result durationMs)" -lt 60000
wait "$jailed"
is 'and a command of a client' $? 137
like 'which is told' "$(cat "$T/jail")" 'the command was ended: timeout'
ok 'nothing of them is left' wait_for 5 no_jail_processes
run output
is 'the most output' "$(result status)" quota
like 'with its event' "$(cat "$T/out")" '"type":"limit.hit".*"output"'
ok 'in its time' test "$(result durationMs)" -lt 20000
ok 'nothing of all this is left' wait_for 5 no_jail_processes
finish
