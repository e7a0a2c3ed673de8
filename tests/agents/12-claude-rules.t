#!/usr/bin/env bash
# The real Claude Code by its driver: rules of tools, what it costs, interrupts, plans, subagents.
. tests/agents/drive.sh
drive_begin claude
agent=claude
cost() { json 'e.filter(x=>x.type==="usage").pop().costUsd' <"$T/out"; }

drive text --allow '' 'Hi.'
is 'tools.allow: []' "$(offered)" '[]'
drive tool --allow Read 'Make it.'
is 'only the allowed tool is offered' "$(offered)" '["Read"]'
drive mcp --mcp "mock=node:$PWD/tests/agents/mock-mcp.mjs" --allow Read 'Call it.'
is 'and those of servers' "$(offered)" '["Read","mcp__mock__mock_echo"]'
drive patterns --allow 'Bash(node:*)' 'Try.'
is 'a pattern: what matches runs' "$(events tool.result 'x.ok?x.output:"no"')" '42,no,no,no'
is 'what does not is denied' "$(events permission.answered 'x.answer+" "+x.by')" 'once harness,deny harness,deny harness,deny harness'
drive deny-bash --deny 'Bash(rm:*)' 'Remove.'
like 'a denied pattern' "$(events tool.result x.output)" 'command rm -f out/hello.txt has been denied.*,kept$'

turns=a drive hello-claude 'Write a greeting and remember the word heliotrope.'
id=$(outcome resume)
is 'a conversation' "$(cost)" 0.00267
turns=a drive hello-claude --resume "$id" 'Which word?'
like 'resumed, it is in the request' "$(outcome finalText)" 'the word was heliotrope'
is 'and costs what it costs alone' "$(cost)" 0.00075

drive hang --interrupt 5 'Hang.'
is 'an interrupt while it speaks' "$(outcome error)" interrupted
drive sleep-tool --interrupt 5 'Sleep.'
is 'an interrupt while a tool runs' "$(outcome error)" interrupted
drive plan 'Plan.'
is 'a plan' "$(json 'e.filter(x=>x.type==="plan.updated").pop().entries' <"$T/out")" '[{"text":"Look around","status":"completed"}]'
drive subagent-late 'Delegate.'
is 'a subagent that ends after the first turn' "$(outcome finalText)" 'The subagent found nothing.'
drive err429-once 'Hi.'
is 'a retry is no failure' "$(events error 'x.code+" "+x.retryable')" 'rate_limit true'
is 'the run goes on' "$(outcome finalText)" 'Recovered after the retry.'
finish
