#!/usr/bin/env bash
# Programs that try to get out, in real jails of the shipped policies.  Each
# prints TAP of its own: what it tried and which errno it must get.
. tests/integration/lib.sh

start_daemon || { echo "not ok 1 - start"; echo 1..1; exit 1; }
cp "$BIN/agentboxd" "$T/present" # something of the host that must not be seen
for program in "$TESTS"/escape/*; do
	[ -x "$program" ] || continue
	name=$(basename "$program")
	for user in agent root; do
		# the program travels through stdin: a jail sees nothing of the build tree
		abctl jail --user $user -- sh -c 'cat >/tmp/t && chmod +x /tmp/t && exec /tmp/t </dev/null' \
			<"$program" >"$T/tap" 2>"$T/err"
		status=$?
		is "$name as $user ends by itself" $status 0
		ok "$name as $user tried something" grep -q '^ok' "$T/tap"
		is "$name as $user: nothing that must fail went through" "$(grep '^not ok' "$T/tap")" ''
	done
done
# the same programs see the difference: without a jail some of them get through
lax=0
for program in "$TESTS"/escape/*; do
	[ -x "$program" ] || continue
	(unshare -m -p -f -n -i -u "$program" </dev/null 2>/dev/null || true) | grep -q '^not ok' && lax=$((lax + 1))
done
ok "a laxer place fails the tests ($lax programs say so)" test "$lax" -gt 0
finish
