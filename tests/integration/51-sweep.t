#!/usr/bin/env bash
# Every system call number, every rule on arguments, every kind of socket: in a jail, against what
# the compiled filter is said to answer; and against a jail without a filter, where it lets pass.
. tests/integration/lib.sh

mkdir -p "$T/etc/policy" "$T/tools"
cp "$TESTS/escape/sweep" "$T/tools/"
ok 'the filter is what the table says' sh -c "'$TESTS/fakes/sweep_table' >'$T/tools/table'"
printf 'extends: default\nfilesystem: { mounts: [ { source: %s, target: /tools } ] }\n' "$T/tools" >"$T/etc/policy/tools.yaml"
: >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
sweep() { abctl jail --policy tools -- /tools/sweep /tools/table "$1" </dev/null 2>"$T/err"; }
lax() { timeout 1200 "$TESTS/fakes/lax" filter "$T/tools" sweep /tools/table "$1" </dev/null 2>"$T/err"; }

sweep refused >"$T/refused"
status=$?
grep '^#' "$T/refused"
is "what is refused gets its own answer ($(sed -n 's/^ok . - //p' "$T/refused" | tr '\n' ';'))" "$status" 0
sweep allowed >"$T/allowed"
lax allowed >"$T/without"
is 'both made the same calls' "$(sed 's/: .*//' "$T/allowed" | sha256sum)" "$(sed 's/: .*//' "$T/without" | sha256sum)"
ok "many ($(wc -l <"$T/allowed"))" test "$(wc -l <"$T/allowed")" -gt 20000
is 'what is allowed gets what the kernel says without a filter' "$(diff "$T/allowed" "$T/without" | head -n 20)" ''
lax unfiltered >"$T/same"
echo "# refused calls that a jail without a filter answers alike: $(cat "$T/same")"
# what the kernel has not got, or wants a capability for; all others tell the two apart
ok 'hundreds of refused calls go farther without a filter' awk '{ exit !($3 - $1 > 300) }' "$T/same"
finish
