#!/usr/bin/env bash
# A supervisor that was taken over, in front of a real agentboxd: every field
# changed, every rule of the protocol broken.  root's daemon must stay, no jail
# may have ids below the lease range, and nothing outside the state directory
# may change.
. tests/integration/lib.sh

mkdir -p "$T/libexec" "$T/etc/policy" "$T/bindable" "$T/agents"
cp "$BIN"/agentbox-* "$T/libexec/"
cp "$TESTS/fakes/hostile_supervisor" "$T/libexec/agentbox-supervisor"
cp "$TESTS/fakes/quiet_egress" "$T/libexec/agentbox-egress"
ln -s /etc "$T/bindable/link"
ln -s /etc "$T/agents/evil"
mkfifo "$T/bindable/fifo"
node -e 'require("net").createServer().listen(process.argv[1], () => process.exit(0))' \
	"$T/bindable/socket" 2>/dev/null
cat >"$T/etc/policy/bindable.yaml" <<Y
extends: default
filesystem:
  bindable:
    - { source: $T/bindable }
Y
: >"$T/etc/agentboxd.yaml"
touch "$T/before"
etc() { find /etc -xdev -type f -exec sha256sum {} + | sort | sha256sum; }
etc_before=$(etc)
mounts_before=$(wc -l </proc/self/mountinfo)

"$BIN/agentboxd" --state "$T/state" --socket "$T/sock" --config "$T/etc/agentboxd.yaml" \
	--agents "$T/agents" --libexec "$T/libexec" --share . 2>"$T/log" &
DAEMON=$!
report=$T/state/supervisor/report
done_with_all() { grep -q 'all parts were done' "$report"; }
over() { done_with_all || ! kill -0 "$DAEMON"; }
wait_for 240 over
ok 'root'"'"'s daemon is alive after all of it' kill -0 "$DAEMON"
ok 'every part was done' done_with_all
ok 'the taken over supervisor tried something' grep -q '^ok' "$report"
is 'nothing that must fail went through' "$(grep '^not-ok' "$report")" ''
is 'each violation was seen and named' "$(grep -cE 'supervisor .*is ended: (protocol violation|it sent something)' "$T/log")" 9
like 'unknown types' "$(cat "$T/log")" 'unknown request 77'
like 'anything before HELLO' "$(cat "$T/log")" 'STATS before HELLO'
like 'a second HELLO' "$(cat "$T/log")" 'second HELLO'
like 'a second ADOPT' "$(cat "$T/log")" 'second ADOPT'
like 'sizes' "$(cat "$T/log")" 'STATS of 40 bytes, not 32'
like 'descriptors' "$(cat "$T/log")" 'STATS with 1 descriptors'
ok 'no process of a jail is left' wait_for 5 no_jail_processes
is 'sessions have the names of sessions' "$(find "$T/state/sessions" -mindepth 1 -maxdepth 1 -type l ! -name 'ses_01jd*')" ''
is 'nothing in /etc changed' "$(etc)" "$etc_before"
is 'nothing of the source changed' "$(find "$T/bindable" "$T/agents" -newer "$T/before")" ''
is 'no descriptor of a jail is left' "$(find "/proc/$DAEMON/fd" -lname 'net:*' | wc -l)" \
	"$(find "/proc/$DAEMON/fd" -lname 'user:*' | wc -l | awk '{ print int($1 / 2) }')"
# named after the state directory: FNV-1a, 64 bits
tree=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/agentbox-$(node -e '
	let h = 14695981039346656037n;
	for (const c of Buffer.from(process.argv[1])) h = ((h ^ BigInt(c)) * 1099511628211n) & 0xffffffffffffffffn;
	console.log(h.toString(16).padStart(16, "0"))' "$T/state")
ok 'its cgroup is there' test -d "$tree"
start=$(date +%s)
ok 'it stops when told' stop_daemon TERM
ok 'within its patience' test $(($(date +%s) - start)) -le 15
is 'no mount is left' "$(wc -l </proc/self/mountinfo)" "$mounts_before"
ok 'no cgroup is left' wait_for 3 sh -c "! test -d '$tree'"
finish
