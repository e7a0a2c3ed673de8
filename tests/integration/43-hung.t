#!/usr/bin/env bash
# A child of agentboxd that lives and does nothing is as good as dead: another takes its place, and runs go on.
. tests/integration/lib.sh
. tests/integration/runs.sh

script slow 'echo on; i=0; while [ $i -lt 60 ] && [ ! -e stop ]; do sleep 1; i=$((i + 1)); done; echo over'
echo 'hang_timeout: 2s' >>"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
id=$(abctl run slow -s u/hung -p x --detach --json | json 'l.runId')
speaks() { abctl logs "$id" --json | grep -q '"agent.message"'; }
ok 'a run' wait_for 20 speaks

for name in supervisor egress; do
	old=$(child_pid "agentbox-$name")
	kill -STOP "$old"
	ok "$name hangs, and another comes" wait_for 30 other_child "agentbox-$name" "$old"
	ok "the one that hung is gone" not kill -0 "$old"
	like 'the log says why' "$(cat "$T/log")" "$name \\(pid $old\\) is ended: it hangs"
done
answers() { abctl version --json; }
ok 'it answers' wait_for 20 answers
abctl exec "$(abctl show "$id" --json | json 'l.sessionId||l.session')" -- touch stop
ends() { abctl show "$id" --json >"$T/shown" && [ "$(json 'l.result?l.result.status:""' <"$T/shown")" = succeeded ]; }
ok 'the run has gone on, to its end' wait_for 60 ends
like 'and lost nothing' "$(cat "$T/shown")" 'over'

# Who answers is left alone, however long nothing happens.
before="$(child_pid agentbox-supervisor) $(child_pid agentbox-egress)"
sleep 4
is 'idle is not hung' "$(child_pid agentbox-supervisor) $(child_pid agentbox-egress)" "$before"
# All of it stopped together, as a frozen service or a suspended machine is: nobody was silent.
mapfile -t all < <(pgrep -P "$DAEMON"; echo "$DAEMON")
kill -STOP "${all[@]}"
sleep 3
kill -CONT "${all[@]}"
sleep 1
is 'nor is what was frozen with agentboxd' "$(child_pid agentbox-supervisor) $(child_pid agentbox-egress)" "$before"
finish
