# shellcheck shell=bash
# machine.sh - QEMU: one machine from its saved state to its result.
#
# Four virtio disks, told apart by serial: root (Debian, the same each time), job (the command in the
# first 64 KB; a tar of what comes back from 1 MB on), project (a copy of this tree) and disk (4 GB, empty
# unless --disk).  The console is ttyS0, what the command prints is ttyS1.

# Nehalem: what is newer (AVX, ERMS, XSAVE) is slow in software.  -cx16: that of QEMU 7.2 corrupts flags.
VM_CPU=Nehalem,+rdrand,-cx16
# norandmaps: translated code is used again only at the same address; else each exec costs five times as much.
VM_KERNEL_ARGS="console=ttyS0 quiet panic=-1 mitigations=off norandmaps random.trust_cpu=on systemd.getty_auto=0
systemd.show_status=0"
# Sparse, and part of the saved state.
VM_SIZES='job=4G project=16G disk=4G'

DISKS=''
# disk NAME FILE FORMAT OPTIONS
disk() { DISKS+=" -drive file=$2,format=$3,if=none,id=$1,$4 -device virtio-blk-pci,drive=$1,serial=$1"; }

# vm SECONDS QEMU-ARGUMENTS...: in place of this shell
vm() {
	# shellcheck disable=SC2086 # DISKS are arguments
	exec timeout --foreground -k 5 "$1" qemu-system-x86_64 -M q35 -accel tcg -cpu "$VM_CPU" \
		-smp "$SMP" -m "$MEM" -nodefaults -display none -no-reboot -kernel "$BASE/vmlinuz" \
		-initrd "$IMAGE/initrd" -append "${VM_KERNEL_ARGS//$'\n'/ }" $DISKS \
		-device vmgenid,guid=auto "${@:2}" 9>&-
}

# Sets STATE, and boots once to make it: the memory of a machine that waits for its job, and what the boot
# wrote to the root disk.
saved_state() {
	STATE=$CACHE/state-$(key "$IMAGE" "$VM_KERNEL_ARGS" "$VM_SIZES" "$SMP" "$MEM" "$VM_CPU" \
		"$(declare -f vm disk saved_state)" "$(qemu-system-x86_64 --version)")
	if [ -d "$STATE" ]; then
		touch "$STATE"
		return
	fi
	echo "rig: saving the booted state $STATE" >&2
	local t=$CACHE/tmp name i
	rm -rf --one-file-system "$t"
	mkdir "$t"
	DISKS=''
	disk root "$IMAGE/root.img" raw cache=unsafe
	for name in job project disk; do disk $name "$W/$name" raw cache=unsafe; done
	{
		echo "snapshot_blkdev root $t/root.qcow2 qcow2"
		echo cont
		for i in {1..6000}; do
			! grep -qs RIG-READY "$t/out" || break
			sleep 0.1
		done
		sleep 0.5
		echo "migrate \"exec:cat >$t/state\""
		echo quit
	} | (vm 660 -S -monitor stdio -serial file:"$t/console" -serial file:"$t/out") >"$t/monitor" || true
	grep -q RIG-READY "$t/out" && [ -s "$t/state" ] || die "no state was saved: see $t"
	mv -T "$t" "$STATE"
}

# project_disk FILE: this tree as built, everything owned by root, without what only the compiler needs
project_disk() {
	local stage=$W/stage size part
	mkdir "$stage"
	tar -C "$TOP" --exclude=./build --exclude=./.git -cf - . | tar -C "$stage" --no-same-owner -xf -
	for part in "build/$MODE"/{bin,tests,lib/libagentbox.a,lib/libagentbox.so.0,deb}; do
		[ ! -e "$TOP/$part" ] || tar -C "$TOP" -cf - "$part" | tar -C "$stage" --no-same-owner -xf -
	done
	size=$(($(du -sm "$stage" | cut -f1) * 5 / 4 + 1024))
	mke2fs -q -F -t ext4 -E lazy_itable_init=1 -d "$stage" "$1" "${size}M" >&2 || die "cannot copy $TOP"
	truncate -s 16G "$1"
	rm -rf --one-file-system "$stage"
}

write_job() { # COMMAND...
	local random
	random=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
	printf 'NOW=%s SEED=%s DIR=%q SOFT=%q CMD=(%s)\n' "$(date +%s)" "$random" "$TOP" "$TIMEOUT" \
		"$(printf '%q ' "$@")" >"$W/command"
	[ "$(stat -c %s "$W/command")" -le 65536 ] || die 'the command is too long'
	dd if="$W/command" of="$W/job" conv=notrunc status=none
}

# run_machine COMMAND...: exits with its status
run_machine() {
	local status qemu tee incoming=()
	write_job "$@"
	DISKS=''
	if [ -n "$COLD" ]; then
		disk root "$IMAGE/root.img" raw snapshot=on
	else
		disk root "$STATE/root.qcow2" qcow2 snapshot=on
		incoming=(-incoming "exec:cat $STATE/state")
	fi
	disk job "$W/job" raw cache=unsafe
	disk project "${VM_PROJECT:-$W/project}" raw snapshot=on
	# shellcheck disable=SC2153 # an option of rig
	disk disk "$DISK" "$([[ $DISK = *.qcow2 ]] && echo qcow2 || echo raw)" cache=writeback
	mkfifo "$W/fifo"
	tee "$OUT/output.log" <"$W/fifo" &
	tee=$!
	(vm $((TIMEOUT + 60)) -serial file:"$OUT/console.log" -serial stdio -pidfile "$OUT/qemu.pid" \
		"${incoming[@]}" </dev/null >"$W/fifo" 2>"$OUT/qemu.log") &
	qemu=$!
	trap 'kill $qemu' INT TERM HUP
	wait $qemu
	status=$?
	while kill -0 $qemu 2>/dev/null; do # a signal ended the wait
		wait $qemu
		status=$?
	done
	wait $tee
	trap - INT TERM HUP
	tail -c +1048577 "$W/job" | tar xf - -C "$OUT" 2>/dev/null
	[ ! -s "$OUT/status" ] || return "$(cat "$OUT/status")"
	cat "$OUT/qemu.log" >&2
	tail -n 60 "$OUT/console.log" >&2
	if [ $status = 124 ]; then
		echo "rig: the machine was killed after $((TIMEOUT + 60)) s" >&2
		return 124
	fi
	die "the machine ended without a result (qemu: $status)"
}
