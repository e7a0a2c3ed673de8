#!/usr/bin/env bash
# The real gemini, copilot, opencode and qwen by the drivers of these names, which their agent.yaml do not use.  Whether they
# take what a driver tells them is seen in what they do.
. tests/agents/drive.sh
drive_begin gemini copilot opencode qwen

declare -A shell=([gemini]=run_shell_command [qwen]=run_shell_command [copilot]=bash [opencode]=bash)
# Qwen tells the output alone or within a report, and of some commands that they had none.
declare -A printed=([qwen]='^hello|\|Output: (hello|\(empty\))\|')
for agent in gemini copilot opencode qwen; do
	drive tool 'Make it.'
	is "$agent: a run" "$(outcome status)" succeeded
	is "$agent: a command" "$(events tool.result 'x.name+" "+x.ok') $(cat "$T/ws/out/hello.txt")" "${shell[$agent]} true hello"
	like "$agent: what it has printed" "$(events tool.result 'x.output.split("\n").join("|")')" "${printed[$agent]:-^hello}"
	is "$agent: nothing is unknown in what it prints" "$(events agent.raw 'x.stream?"":x.line' | tr -d ,)" ''
	drive resume 'Remember heliotrope.'
	id=$(outcome resume)
	ok "$agent: says its conversation" test -n "$id"
	drive err401 'Hi.'
	is "$agent: an API error" "$(outcome status)" failed
	drive text --resume 99999999-2222-4333-8444-555555555555 'Hi.'
	is "$agent: a conversation that is gone" "$(outcome resumeLost)" true
	drive tool --deny "${shell[$agent]}" 'Make it.'
	like "$agent: tools.deny: others are offered" "$(offered)" '"glob"'
	is "$agent: the tool is not" "$(offered | grep -c "\"${shell[$agent]}\"")" 0
	drive mcp --mcp "mock=node:$PWD/tests/agents/mock-mcp.mjs" --mcp-env "MCP_WORD=$MCP_WORD" --mcp-env "MCP_EXPECTS=$MCP_EXPECTS" 'Call it.'
	is "$agent: a tool of an MCP server" "$(events tool.result 'x.ok+" "+x.output')" 'true echo: ping'
	drive marker --system MARKER-APPENDED-7f3 'Hi.'
	is "$agent: the system prompt" "$(outcome finalText)" 'The marker is there.'
done

for agent in gemini qwen; do
	drive loop --max-turns 2 'Loop.'
	is "$agent: the limit of turns" "$(outcome maxTurns)" true
done
agent=gemini
drive tool --permissions deny 'Make it.'
is 'gemini: permissions: deny' "$(events tool.result x.ok)" false
agent=copilot
drive tool --permissions deny 'Make it.'
is 'copilot: permissions: deny' "$(events permission.answered 'x.answer+" "+x.by')" 'deny agent'
drive tool --allow view --allow glob 'Make it.'
is 'copilot: tools.allow' "$(offered)" '["view","glob"]'
agent=qwen
drive tool --permissions deny 'Make it.'
is 'qwen: permissions: deny' "$(events permission.answered 'x.answer+" "+x.by')" 'deny harness'
drive tool --permissions ask --answer once 'Make it.'
is 'qwen: permissions: ask' "$(events permission.answered 'x.answer+" "+x.by') $(events tool.result x.ok)" 'once user true'
drive hang --interrupt 10 'Hang.'
is 'qwen: an interrupt' "$(outcome error)" 'Operation cancelled.'
finish
