#!/usr/bin/env bash
# The self-test: a canary jail proves the layers at start and at each reload; what it does not
# find is missing whatever the probes say, and without a canary nothing is served.
# The host's mounts are shared, as under systemd, in a mount namespace of the test's own: what a lie
# let through to them would be the test's alone.
if [ "${1:-}" != inside ] && [ "$(id -u)" = 0 ]; then
	exec unshare --mount --propagation private -- sh -c 'mount --make-rshared / && exec bash "$0" inside' "$0"
fi
. tests/integration/lib.sh

row() { abctl doctor --json | json "(x=>x.have+' '+x.detail)(l.layers.find(x=>x.layer==='$1'))"; }
health() { curl -sS --unix-socket "$T/sock" -o "$T/health" -w '%{http_code} ' http://x/healthz; cat "$T/health"; }
# The programs in a place of the test's own, so that the canary can be spoilt.
libexec() {
	mkdir -p "$T/libexec"
	cp "$BIN"/agentbox-* "$T/libexec/"
}
# start_lying LIE... : a daemon below a kernel that lies
start_lying() {
	"$TESTS/fakes/lying" "$@" -- "$BIN/agentboxd" --state "$T/state" --socket "$T/sock" \
		--libexec "$BIN" 2>>"$T/log" &
	DAEMON=$!
	wait_for 30 abctl version --json && CGROUP=$(daemon_cgroup)
}

# ---- as it should be
libexec
start_daemon --libexec "$T/libexec" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
ms=$(sed -n 's/.*self-test: [0-9]* layers proven in \([0-9]*\) ms$/\1/p' "$T/log")
echo "# the self-test took $ms ms"
# some 30 ms; in an emulated machine a hundred times that
ok 'the canary has looked, and was not waited for long' test "${ms:-9999}" -lt 5000
before=$(grep -n 'self-test:' "$T/log" | head -n 1 | cut -d: -f1)
ready=$(grep -n 'ready:' "$T/log" | head -n 1 | cut -d: -f1)
ok 'before anything is served' test "$before" -lt "$ready"
is 'every isolation layer is there' "$(abctl doctor --json | json 'l.layers.filter(x=>!x.layer.startsWith("limit.")&&x.have!=="yes").map(x=>x.layer).join()')" ''
is 'doctor says that it was proven' "$(abctl doctor --json | json 'l.selfTest.ok&&l.selfTest.us>0')" true
like 'also to people' "$(abctl doctor)" '^self-test: a canary jail has shown'
check() { abctl doctor --json | json "(x=>x.state+' '+x.found)(l.host.find(x=>x.check==='$1'))"; }
is 'doctor tells of switches of the host as they are' "$(check kernel.randomize_va_space | cut -d' ' -f2)" "$(cat /proc/sys/kernel/randomize_va_space)"
is 'also of those that root alone may read' "$(check fs.protected_symlinks | cut -d' ' -f2)" "$(cat /proc/sys/fs/protected_symlinks)"
# What a jail may take of the processors: told by the check as by the layer.
is 'doctor says what bounds a fork bomb' "$(check 'processor shares' | cut -d' ' -f1)" \
	"$(abctl doctor --json | json 'l.layers.find(x=>x.layer==="limit.cpu").have==="yes"?"ok":"advice"')"
like 'also to people' "$(abctl doctor)" 'processor shares.*cpu controller'
is 'with a remedy where there is one to take' "$(abctl doctor --json | json 'l.host.every(x=>x.found&&x.why&&(x.state==="ok")===!x.remedy)')" true
is 'a switch that is bad counts, advice does not' "$(abctl doctor --json | json 'l.ok===l.host.every(x=>x.state!=="bad")')" true
like 'doctor is honest about the shared kernel' "$(abctl doctor | tr '\n' ' ')" "share this host's kernel: one kernel bug .* is a way out"
like 'and about the root that the policy shows' "$(abctl doctor --json | json 'l.isolation.root+": "+l.isolation.rootNote')" "^host: .*page cache"
is 'healthz is ok' "$(health | tr -d '\n')" '200 {"status":"ok"}'
is 'it leaves nothing in the state directory' "$(find "$T/state" -name '*selftest*' -o -name canary)" ''
is 'and no cgroup' "$(find "$CGROUP" -type d -name 'canary*')" ''
ok 'and no process' no_jail_processes

# ---- it runs again at a reload, and without it nothing is served
ok 'reload' abctl reload
is 'proves again' "$(grep -c 'self-test: .* proven' "$T/log")" 2
chmod 700 "$T/libexec/agentbox-canary"
abctl reload >"$T/out" 2>"$T/err"
is 'a canary that cannot be started fails the reload' $? 111
like 'with the reason' "$(tail -n 1 "$T/err")" '^abctl: system: .*self-test failed: the canary could not be started: Permission denied'
abctl jail -- true >"$T/out" 2>"$T/err"
is 'then no policy is served' $? 111
like 'with reason and remedy' "$(tail -n 1 "$T/err")" "policy 'default' is not served: the self-test failed: .*Permission denied; remedy: .*abctl reload"
abctl run hello -s u/unproven -p x >"$T/out" 2>"$T/err"
is 'no run either' $? 111
abctl doctor >"$T/out"
is 'doctor exits 1' $? 1
like 'and says why' "$(cat "$T/out")" '^self-test: FAILED.*Permission denied'
like 'healthz says so, too, with 503' "$(health)" '^503 .*"status":"unproven".*Permission denied'
ok 'the daemon lives' abctl version --json
printf '#!/bin/sh\nexit 3\n' >"$T/libexec/agentbox-canary"
chmod 755 "$T/libexec/agentbox-canary"
abctl reload 2>"$T/err"
like 'a canary that only ends is none' "$(cat "$T/err")" 'the canary ended with exit code 3'
printf '#!/bin/sh\nhead -c 5000 /dev/zero\nsleep 9\n' >"$T/libexec/agentbox-canary"
abctl reload 2>"$T/err"
like 'nor one that says something else' "$(cat "$T/err")" "canary's record is none"
printf '#!/bin/sh\nsleep 120\n' >"$T/libexec/agentbox-canary"
start=$(date +%s%N)
abctl reload 2>"$T/err"
ms=$((($(date +%s%N) - start) / 1000000))
like 'nor one that says nothing' "$(cat "$T/err")" 'said nothing within 10 s'
ok "which is waited for in bounds ($ms ms)" test $ms -lt 60000
cp "$BIN/agentbox-canary" "$T/libexec/agentbox-canary"
ok 'mended, a reload serves again' abctl reload
is 'jails' "$(abctl jail -- echo hi 2>/dev/null)" hi
is 'healthz, too' "$(health | tr -d '\n')" '200 {"status":"ok"}'
ok 'nothing of all those canaries is left' no_jail_processes
stop_daemon

# ---- a kernel that says "done" and did nothing: the probes believe it, the canary does not
: >"$T/log"
mounts=$(findmnt -rno TARGET | sort | sha256sum)
ok 'a daemon below a kernel that lies' start_lying keyctl=0 setns/1/0x08000000=0 unshare/0/0x02000000=0 mount=0
is 'no keyring of its own' "$(row keyring)" 'no self-test: the jail has no keyring of its own'
is 'the ipc namespace of the host' "$(row ipcns)" "no self-test: the jail is in the host's ipc namespace"
is 'the cgroup namespace of the host' "$(row cgroupns)" "no self-test: the host's path of the cgroup shows"
is 'an open /proc' "$(row proc)" 'no self-test: /proc/interrupts can be read'
is 'the others hold' "$(row seccomp | cut -d' ' -f1)$(row pidns | cut -d' ' -f1)" yesyes
is 'the mounts of the host are as they were' "$(findmnt -rno TARGET | sort | sha256sum)" "$mounts"
like 'each is an error of the log, with a remedy' "$(grep -cE '(error: |<3>)layer .* is missing: self-test: .*; remedy: ' "$T/log")" '^4$'
abctl jail -- true >"$T/out" 2>"$T/err"
is 'policies that require one are refused' $? 111
like 'by name, with the remedy' "$(tail -n 1 "$T/err")" "policy 'default' requires ipcns .*: self-test: .*; remedy: ."
like 'healthz is degraded' "$(health)" '^200 .*"status":"degraded".*requires ipcns'
abctl doctor >"$T/out"
is 'doctor exits 1' $? 1
stop_daemon

: >"$T/log"
ok 'below one that takes no filter and says it did' start_lying seccomp/0/1=0
like 'the filter is missed' "$(row seccomp)" '^no self-test: keyctl: '
abctl jail -- true >"$T/out" 2>"$T/err"
is 'and nothing runs without' $? 111
stop_daemon KILL

: >"$T/log"
ok 'below one that does not start a jail at all' start_lying execveat=1
like 'the step is named' "$(health)" '^503 .*exec of the jail.s program: Operation not permitted'
stop_daemon
finish
