#!/usr/bin/env bash
# The rig itself: whose status it ends with, what comes back, and that it does not take a skip for a pass.
. tests/integration/lib.sh

rig() { bash tests/vm/rig "$@"; }
exits() { # STATUS ARGUMENTS...
	local want=$1
	shift
	rig run --out "$T/out" "$@" >"$T/said" 2>&1
	test $? = "$want"
}
ok 'there is a machine' rig build || finish
# shellcheck disable=SC2016 # for the shell in the machine
ok 'the status is that of the command' exits 7 'echo said; echo left >"$VM_OUT/file"; exit 7'
is 'its output comes back' "$(cat "$T/said")" said
is 'and what it left' "$(cat "$T/out/file")" left
ok 'a command that does not end' exits 124 --timeout 5 'sleep 1000'
like 'is shown' "$(cat "$T/said")" 'sleep 1000'
ok 'a kernel that dies' exits 125 'echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger; sleep 100'
like 'is shown' "$(cat "$T/said")" 'sysrq triggered crash'
ok 'a test that skips fails' not rig test tests/vm/inside/skips
like 'by its number' "$(cat "$T/ok.out")" 'Failed test: *2'
finish
