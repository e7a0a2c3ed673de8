# shellcheck shell=bash
# daemon.sh - for the scripts whose power is cut: a daemon with its state on the disk that outlives the machine.
#
#	. tests/vm/inside/daemon.sh
#	state_disk [MOUNT-OPTION]
#	harness NAME COMMAND [LINE...]
#	start		sets DAEMON, and SOCKET that it answers on
#	stop

STATE=/var/lib/agentbox
SOCKET=/run/power.sock

state_disk() {
	mkdir -p $STATE /etc/agentbox/{harnesses,policy}
	mount -o "noatime${1:+,$1}" "$VM_DISK" $STATE
	# The saved state has booted once and is restored each time; by its boot id a power cut is known.
	cat /proc/sys/kernel/random/uuid >/run/boot_id
	mount --bind /run/boot_id /proc/sys/kernel/random/boot_id
	cat >/etc/agentbox/agentboxd.yaml <<-'Y'
		runs: { max: 3 }
		harness_dirs: [ /etc/agentbox/harnesses ]
	Y
}

harness() {
	local name=$1 command=$2
	shift 2
	printf '%s\n' '---' 'backend: exec' "command: [sh, -c, \"$command\"]" "$@" '---' >/etc/agentbox/harnesses/"$name".md
}

start() {
	"$BIN/agentboxd" --state $STATE/state --socket $SOCKET 2>"$VM_OUT/agentboxd.log" &
	DAEMON=$!
	local _
	for _ in {1..600}; do
		! "$BIN/abctl" --socket $SOCKET version >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	return 1
}

stop() {
	local status=0
	kill "$DAEMON"
	wait "$DAEMON" || status=$?
	return $status
}
