#!/usr/bin/env bash
# A supervisor that ends at every start: it is started ever more slowly, and the jails of its runs
# do not wait for ever.
. tests/integration/lib.sh

mkdir -p "$T/etc/harnesses" "$T/libexec"
cp "$BIN"/agentbox-* "$T/libexec/"
printf -- '---\nbackend: exec\ncommand: [sh, -c, "echo on; sleep 1000"]\n---\n' >"$T/etc/harnesses/sleeper.md"
: >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" --libexec "$T/libexec" ||
	{ echo "not ok 1 - start"; echo 1..1; exit 1; }
abctl run sleeper -s u/a --detach --json >"$T/run"
id=$(json 'l.runId||l.run' <"$T/run")
ok 'a run is there' wait_for 10 sh -c "$BIN/abctl --socket $T/sock logs $id --json | grep -q agent.message"
mv "$T/libexec/agentbox-supervisor" "$T/good"
printf '#!/bin/sh\nexit 1\n' >"$T/libexec/agentbox-supervisor"
chmod 755 "$T/libexec/agentbox-supervisor"
kill -9 "$(child_pid agentbox-supervisor)"
begun=$(date +%s)
timeout 18 "$BIN/abctl" --socket "$T/sock" ps >"$T/waits" 2>&1
like 'who asks meanwhile is told why it waits' "$(cat "$T/waits")" 'notice: the daemon is there, but nobody has taken the request yet: its supervisor'
while [ $(($(date +%s) - begun)) -lt 20 ]; do sleep 0.5; done
starts=$(grep -c 'supervisor (pid [0-9]*) ended with exit code 1' "$T/log")
ok "it is tried again, and not without end ($starts starts in 20 s)" test "$starts" -ge 3 -a "$starts" -le 12
ok 'the jail waits for one that works' test -n "$(jail_processes)"
ok 'but not for ever' wait_for 80 no_jail_processes
took=$(($(date +%s) - begun))
ok "for a minute ($took s)" test "$took" -ge 55
like 'the log says why' "$(cat "$T/log")" 'no supervisor has lived for 60 s: 1 jails are ended'
mv "$T/good" "$T/libexec/agentbox-supervisor"
ok 'one that works comes back by itself' wait_for 20 abctl version
# it answers before it has heard of agentboxd which jails there are
interrupted() { abctl show "$id" --json >"$T/shown" && [ "$(json 'l.status||l.result.status' <"$T/shown")" = interrupted ]; }
ok 'the run was interrupted' wait_for 20 interrupted
like 'and says why' "$(cat "$T/shown")" 'no supervisor came to take it up'
is 'its session works' "$(timeout 60 "$BIN/abctl" --socket "$T/sock" run hello -s u/a -p x --json | json 'l.result.status')" succeeded
finish
