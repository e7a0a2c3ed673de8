#!/usr/bin/env bash
# More than 300 runs while supervisor, egress and agentboxd are killed at random: what was accepted
# ends, once; logs have no hole; sessions work; nothing is left.  SOAK_SEED repeats a course.
. tests/integration/lib.sh

ROUNDS=12
EACH=30
RANDOM=${SOAK_SEED:=$((RANDOM))}
echo "# SOAK_SEED=$SOAK_SEED"
mkdir -p "$T/etc/harnesses"
printf -- '---\nbackend: exec\ncommand: [sh, -c, "for i in 1 2 3 4 5; do echo $i; sleep 0.02; done"]\n---\n' \
	>"$T/etc/harnesses/lines.md"
echo 'runs: { max: 8 }' >"$T/etc/agentboxd.yaml"
up() { start_daemon --config "$T/etc/agentboxd.yaml"; }
up || { echo "not ok 1 - start"; echo 1..1; exit 1; }
soak() { python3 tests/integration/soak.py "$T/sock" "$@"; }
number() { abctl stats --json | json "l.$1"; }
quiet() { [ "$(number 'runsRunning+l.runsQueued+l.jails')" = 0 ]; }
answers() { abctl version; }

fds() { find "/proc/$1/fd" -type l 2>/dev/null | wc -l; }
# The supervisor keeps the logs of used sessions open: their number is the same at both times.
measure() {
	echo "fd-agentboxd $(fds "$DAEMON")"
	echo "fd-supervisor $(fds "$(child_pid agentbox-supervisor)")"
	echo "fd-egress $(fds "$(child_pid agentbox-egress)")"
	echo "mounts $(wc -l <"/proc/$DAEMON/mountinfo")"
	echo "cgroups $(find "$(daemon_cgroup)" -type d | wc -l)"
	echo "children $(pgrep -P "$DAEMON" | wc -l)"
}
settled() { measure >"$T/now"; cmp -s "$T/before" "$T/now"; }
each_session() { soak post 12 0 "$1" && wait_for 60 quiet; }

each_session "$T/first"
is 'every session was used' "$(wc -l <"$T/first")" 12
sleep 1
measure >"$T/before"
kills=0
for round in $(seq "$ROUNDS"); do
	soak post "$EACH" "$round" "$T/ledger" &
	poster=$!
	for shot in 1 2; do
		sleep "0.$((RANDOM % 6 + 1))"
		case $((RANDOM % 8)) in
		0)
			stop_daemon KILL
			up || { echo "Bail out! agentboxd does not start again"; exit 1; }
			;;
		1 | 2) kill -9 "$(child_pid agentbox-egress)" && kills=$((kills + 1)) ;;
		*) [ "$shot" = 2 ] || { kill -9 "$(child_pid agentbox-supervisor)" && kills=$((kills + 1)); } ;;
		esac
		wait_for 20 answers
	done 2>/dev/null
	wait "$poster"
done
until [ "$(wc -l <"$T/ledger")" -ge 310 ]; do soak post "$EACH" 0 "$T/ledger"; done
ok 'all that was accepted came to its end' wait_for 120 quiet
ok 'something was killed' test "$kills" -ge 5
is 'each has one run.done, logs no hole' "$(soak check "$T/ledger")" ''
: >"$T/last"
each_session "$T/last"
is 'every session works' "$(wc -l <"$T/last")" 12
is 'as promised' "$(soak check "$T/last")" ''
ok 'nothing of it is left' wait_for 30 settled || diff "$T/before" "$T/now" | sed 's/^/# /'
ok 'no process of a jail' wait_for 5 no_jail_processes
sessions=$(find "$T/state/sessions" -mindepth 1 -maxdepth 1 -type d | wc -l)
is 'no session but those that were named' "$sessions" 12
cgroup=$(daemon_cgroup)
ok 'it stops' stop_daemon TERM
ok 'and leaves no cgroup' test ! -e "$cgroup"
is 'and no mount' "$(grep -c "$T" /proc/self/mountinfo)" 0
finish
