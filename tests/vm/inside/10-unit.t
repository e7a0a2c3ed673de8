#!/usr/bin/env bash
# The service as `make install` leaves it, under systemd: activation, readiness, what the unit takes from the
# process, delegation, reload, stop, restart and death with runs alive.
. tests/integration/lib.sh

[ -d /run/systemd/system ] || skip_all 'systemd is not PID 1'
abctl() { /usr/local/bin/abctl "$@"; }
prop() { systemctl show -P "$1" "${2:-agentboxd.service}"; }
answers() { abctl version; }
status() { abctl show "$1" --json | json 'l.status||l.result.status'; }
has_status() { [ "$(status "$1")" = "$2" ]; }
working() { abctl logs "$1" --json | grep -q agent.message; }
said() { journalctl -q -u agentboxd --since "@$since" -o cat | grep -qE -- "$1"; }
mark() { since=$(date +%s); }
mark

packaging/install.sh '' /usr/local "$BIN" >"$T/out" 2>&1
is 'make install' $? 0
like 'says how to start it' "$(cat "$T/out")" 'systemctl enable --now'
is 'systemd finds no fault in the units' "$(systemd-analyze verify --man=no agentboxd.service agentboxd.socket 2>&1)" ''
printf -- '---\nbackend: exec\npolicy: small\ncommand: [sh, -c, "echo on; trap : TERM; while :; do sleep 1000; done"]\n---\n' >/etc/agentbox/harnesses/sleeper.md
printf -- '---\nbackend: exec\npolicy: small\ncommand: [sh, -c, "head -c 200000000 /dev/zero | tail -c 199999999 | wc -c"]\n---\n' \
	>/etc/agentbox/harnesses/eater.md
printf -- '---\nbackend: exec\npolicy: small\ncommand: [sh, -c, "head -c 30000000 /dev/zero >f"]\n---\n' >/etc/agentbox/harnesses/filler.md
printf 'extends: default\nlimits: { memory: 64M, disk: 16M }\n' >/etc/agentbox/policy/small.yaml

# ---- activation and readiness ----
ok 'the socket is enabled and listens' systemctl enable -q --now agentboxd.socket
is 'nothing runs yet' "$(prop ActiveState)" inactive
is 'the socket is for its group' "$(stat -c '%a %U %G' /run/agentbox/agentbox.sock)" '660 root agentbox'
is 'the first client starts the service' "$(abctl run hello -s u/a -p hi --json | json l.result.status)" succeeded
is 'which said that it is ready' "$(prop ActiveState) $(prop SubState) $(prop Type)" 'active running notify' || {
	journalctl -q -u agentboxd -o cat | tail -n 20 | sed 's/^/# /'
	finish # nothing else can be said of it
}
main=$(prop MainPID)
inode=$(awk '$8 == "/run/agentbox/agentbox.sock" { print $7; exit }' /proc/net/unix)
is 'it serves the socket of the manager' "$(awk '$8 == "/run/agentbox/agentbox.sock" && $6 == "01"' /proc/net/unix | grep -c "$inode")" 1
systemctl stop agentboxd.service
echo 'limits: { memroy: 1G }' >/etc/agentbox/policy/bad.yaml
mark
ok 'a start that fails is told to systemctl' not systemctl start agentboxd.service
ok 'with the reason in the journal' wait_for 20 said 'bad.yaml:1.*memroy'
rm /etc/agentbox/policy/bad.yaml
systemctl stop agentboxd.service
systemctl reset-failed agentboxd.service agentboxd.socket
systemctl start agentboxd.socket
ok 'and works once it is mended' systemctl start agentboxd.service
main=$(prop MainPID)

# ---- what the unit takes from the process ----
status_of() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$main/status"; }
want=$(sed -n 's/^CapabilityBoundingSet=//p' packaging/systemd/agentboxd.service | xargs)
listed=$(prop CapabilityBoundingSet | tr '[:lower:]' '[:upper:]' | tr ' ' '\n' | sort | xargs)
is 'the bounding set is what the unit lists' "$listed" "$(tr ' ' '\n' <<<"$want" | sort | xargs)"
bits=$(($(python3 -c '
import sys
names = "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP".split()
print(sum(1 << names.index(n[4:]) for n in sys.argv[1].split()))' "$want")))
for set in CapBnd CapPrm CapEff; do
	is "no capability beyond it in $set" $((0x$(status_of $set) & ~bits)) 0
done
is 'none is inherited' "$(status_of CapInh) $(status_of CapAmb)" '0000000000000000 0000000000000000'
is 'no new privileges' "$(status_of NoNewPrivs)" 1
is 'umask' "$(status_of Umask)" 0077
is 'the OOM killer takes others first' "$(cat "/proc/$main/oom_score_adj")" -500
is 'descriptors' "$(awk '/^Max open files/ { print $5 }' "/proc/$main/limits")" 524288
within() { nsenter -t "$main" -m -- "$@"; }
for dir in /usr /etc /boot /home /root /var/log; do
	ok "$dir cannot be written" not within touch "$dir/probe"
	ok "by its mount" within sh -c "touch $dir/probe 2>&1 | grep -q 'Read-only'"
done
touch /tmp/probe-of-host
ok 'it has a /tmp of its own' not within test -e /tmp/probe-of-host
ok 'and its state' within sh -c 'touch /var/lib/agentbox/probe && rm /var/lib/agentbox/probe'
is 'the state is for root' "$(stat -c '%a %U' /var/lib/agentbox)" '700 root'
is 'no mount of it is seen on the host' "$(grep -c /var/lib/agentbox /proc/self/mountinfo)" 0
score=$(systemd-analyze security --no-pager agentboxd.service | sed -n 's/.*Overall exposure level.*: \([0-9.]*\) .*/\1/p')
ok "systemd-analyze security: exposure $score" awk -v s="${score:-10}" 'BEGIN { exit !(s < 6.5) }'

# ---- delegation ----
group=/sys/fs/cgroup$(prop ControlGroup)
is 'the cgroup is delegated' "$(prop Delegate) $(python3 -c 'import os, sys; print(os.getxattr(sys.argv[1], "trusted.delegate").decode())' "$group")" 'yes 1'
is 'its processes are in leaves' "$(cat "$group/cgroup.procs")" ''
like 'the daemon in one of them' "$(sed -n 's/^0:://p' "/proc/$main/cgroup")" '^/system.slice/agentboxd.service/.'
missing=$(abctl doctor --json | json 'l.layers.filter(x=>x.layer.startsWith("limit.")&&x.have!=="yes").map(x=>x.layer).join()')
is 'every limit has its controller' "$missing" ''
is 'memory is limited below the unit' "$(abctl run eater -s u/eat -p x --json | json l.result.status)" oom
like 'and a disk, by the devices that the unit leaves' "$(abctl run filler -s u/fill -p x --json)" '"limit.hit","limit":"disk"'
is 'the service did not notice' "$(prop MainPID) $(prop NRestarts)" "$main 0"
child=$(pgrep -P "$main" -f agentbox-supervisor)
is 'the supervisor has no capability' "$(grep -c '^Cap.*:.0000000000000000$' "/proc/$child/status")" 5

# sleeper USER: a run at work; sets id
sleeper() {
	id=$(abctl run sleeper -s "u/$1" -p x --detach --json | json 'l.runId||l.run')
	wait_for 60 working "$id"
}
# What can be left: processes with a jail's ids, groups below the unit's, mounts in any namespace, loop devices.
left() {
	ps -eo uid=,pid=,args= | awk '$1 > 536936447 && $1 < 1073741824'
	find "$group" -mindepth 1 -type d 2>/dev/null
	cat /proc/[0-9]*/mountinfo 2>/dev/null | grep -F /var/lib/agentbox
	losetup -a | grep agentbox
}
nothing_left() { [ -z "$(left)" ]; }

# ---- reload ----
sleeper reload
printf 'extends: default\n' >/etc/agentbox/policy/added.yaml
has() { abctl policy ls | grep -q "$1"; }
ok 'reload' systemctl reload agentboxd.service
ok 'reads the policies' wait_for 30 has added
is 'it is the same process' "$(prop MainPID) $(prop ActiveState)" "$main active"
ok 'and the run goes on' has_status "$id" running
mark
echo 'limits: { pids: x }' >/etc/agentbox/policy/added.yaml
systemctl reload agentboxd.service
ok 'a reload that fails is in the journal' wait_for 30 said 'added.yaml:1'
is 'and changes nothing' "$(prop MainPID) $(prop ActiveState) $(status "$id")" "$main active running"
rm /etc/agentbox/policy/added.yaml
systemctl reload agentboxd.service

# ---- stop ----
kept=$id
sleeper stop
abctl jail -- sh -c 'trap "" TERM; sleep 1000 & sleep 1000' >/dev/null 2>&1 &
ok 'a jail beside them' wait_for 60 sh -c "ps -eo uid=,args= | awk '\$1 > 536936447' | grep -q 'sleep 1000'"
ok 'there is something to leave behind' test -n "$(left)"
began=$(date +%s)
ok 'a loop device among it' sh -c 'losetup -a | grep -q agentbox'
ok 'stop with runs alive' systemctl stop agentboxd.service
ok "within the unit's time ($(($(date +%s) - began)) s)" test $(($(date +%s) - began)) -lt 30
is 'it ended by itself' "$(prop Result) $(prop ExecMainCode) $(prop ExecMainStatus)" 'success 1 0'
is 'nothing is left' "$(left)" ''
is 'no group either' "$(find "$group" -type d 2>/dev/null)" ''
is 'the socket is still there: a client starts it again' "$(status "$id")" interrupted
is 'as are all that were alive' "$(status "$kept")" interrupted
like 'their events are kept' "$(abctl logs "$id" --json)" agent.message
is 'and their sessions work' "$(abctl run hello -s u/stop -p again --json | json l.result.status)" succeeded

# ---- restart ----
sleeper restart
main=$(prop MainPID)
systemctl restart --no-block agentboxd.service
is 'who asks in the middle of a restart is answered' "$(timeout 120 /usr/local/bin/abctl show "$id" --json | json 'l.status||l.result.status')" interrupted
ok 'it is another process' test "$(prop MainPID)" != "$main"
is 'the run is not' "$(ps -eo uid=,args= | awk '$1 > 536936447' | grep -c 'sleep 1000')" 0

# ---- death ----
sleeper death
main=$(prop MainPID)
kill -9 "$main"
again() { [ "$(prop MainPID)" != "$main" ] && [ "$(prop ActiveState)" = active ]; }
ok 'SIGKILL: the manager starts it again' wait_for 60 again
is 'once' "$(prop NRestarts)" 1
ok 'it answers' answers
is 'the run is interrupted' "$(status "$id")" interrupted
is 'and gone' "$(ps -eo uid=,args= | awk '$1 > 536936447' | grep -c 'sleep 1000')" 0
is 'its session works' "$(abctl run hello -s u/death -p again --json | json l.result.status)" succeeded

# ---- the end ----
ok 'both stop' systemctl stop agentboxd.service agentboxd.socket
is 'nothing is left' "$(left)" ''
ok 'the socket is gone' test ! -e /run/agentbox/agentbox.sock
is 'nothing failed' "$(systemctl --failed --no-legend --plain | grep agentbox)" ''
finish
