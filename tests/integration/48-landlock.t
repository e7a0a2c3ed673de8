#!/usr/bin/env bash
# A kernel without Landlock, and one that only says that it has it: who warns goes on and is told,
# who requires it is refused.
. tests/integration/lib.sh

mkdir -p "$T/etc/policy"
: >"$T/etc/agentboxd.yaml"
printf 'extends: default\nlayers: { landlock: require }\n' >"$T/etc/policy/both.yaml"
row() { abctl doctor --json | json "(x=>x.have+' '+x.detail+'; '+x.remedy)(l.layers.find(x=>x.layer==='landlock'))"; }
layers() { abctl run hello -s u/g -p x --json 2>"$T/err" | json 'l.result.status+" "+l.result.layers.includes("landlock")'; }
# start_below LIE...: a daemon below such a kernel
start_below() {
	: >"$T/log"
	"$TESTS/fakes/lying" "$@" -- "$BIN/agentboxd" --state "$T/state" --socket "$T/sock" \
		--config "$T/etc/agentboxd.yaml" --libexec "$BIN" 2>>"$T/log" &
	DAEMON=$!
	wait_for 60 abctl version --json && CGROUP=$(daemon_cgroup)
}

start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
like 'this kernel has it' "$(row)" '^yes files'
is 'a run has it in its record' "$(layers)" 'succeeded true'
is 'a policy that requires it is served' "$(abctl jail --policy both -- echo hi 2>/dev/null)" hi
stop_daemon

# booted without it: what the kernel says then
ok 'below a kernel without it' start_below landlock_create_ruleset=95
like 'doctor says so, with the remedy' "$(row)" '^no .*; .*lsm= of the boot line'
is 'default goes on, and its record does not have it' "$(layers)" 'succeeded false'
like 'a jail is told on its first line' "$(abctl jail -- true 2>&1 | head -n 1)" 'landlock'
is 'and the first layer holds alone' "$(abctl jail -- sh -c 'touch /usr/x 2>&1 | grep -c Read-only; mknod /tmp/x b 8 0 2>&1 | grep -c "not permitted"' 2>/dev/null)" "$(printf '1\n1')"
abctl jail --policy both -- true 2>"$T/err"
is 'who requires it is refused' $? 111
like 'by name, with the remedy' "$(tail -n 1 "$T/err")" "policy 'both' requires landlock .*; remedy: ."
stop_daemon

# the call that puts it in force does nothing
ok 'below a kernel that only says that it has it' start_below landlock_restrict_self=0
like 'it is found to be missing' "$(row)" '^no '
abctl jail --policy both -- true 2>"$T/err"
is 'and who requires it is refused' $? 111
stop_daemon
finish
