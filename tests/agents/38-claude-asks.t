#!/usr/bin/env bash
# The real Claude asks a person something, who answers with a text of their own; or nobody does.
. tests/agents/real.sh
install_agent claude
start_scenarios
for name in asks nobody; do
	stand_in | sed "s#\(upstream: \"[^\"]*\)\"#\1/x/ask-person/$name\"#" >"$T/etc/policy/$name.yaml"
	printf -- '---\nbackend: claude\npolicy: %s\nmodel: claude-sonnet-4-5\npermissions: %s\n---\n' $name \
		"$([ $name = asks ] && echo ask || echo '{ mode: ask, timeoutMs: 2000 }')" >"$T/etc/harnesses/$name.md"
done
: >"$T/etc/agentboxd.yaml"
export PROOF_KEY=$KEY
ok 'the daemon' start_daemon --config "$T/etc/agentboxd.yaml" --agents "$AGENTS" || finish

abctl run asks -s u/asks -p 'Ask me.' --json >"$T/out" 2>"$T/err" &
run=$!
ok 'a question comes' wait_for 120 grep -q question.asked "$T/out" || finish
question='e.find(x=>x.type==="question.asked")'
is 'it says what there is to choose' "$(json "(q=>q.text+' '+q.options.join())($question)" <"$T/out")" 'Which colour?
Red: warm
Blue: cold Red,Blue'
ok 'it is answered' abctl answer "$(json 'e[0].run' <"$T/out")" "$(json "$question.questionId" <"$T/out")" heliotrope
wait "$run"
is 'Claude has heard it' "$(json 'l.result.status+" "+l.result.finalText' <"$T/out")" 'succeeded It is heliotrope then.'
is 'its call succeeded' "$(json 'e.filter(x=>x.type==="tool.result").map(x=>x.name+" "+x.ok).join()' <"$T/out")" 'AskUserQuestion true'
is 'it is told who said it' "$(json 'e.filter(x=>x.type==="question.answered").map(x=>x.text+" "+x.by).join()' <"$T/out")" 'heliotrope user'
abctl run nobody -s u/nobody -p 'Ask me.' --json >"$T/out" 2>"$T/err"
is 'a question that nobody answers fails the call' "$(json 'e.filter(x=>x.type==="tool.result").map(x=>x.name+" "+x.ok).join()' <"$T/out")" 'AskUserQuestion false'
ok 'nothing is left' wait_for 20 no_jail_processes
finish
