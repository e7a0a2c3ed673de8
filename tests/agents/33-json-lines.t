#!/usr/bin/env bash
# The real gemini, copilot, opencode and qwen by the drivers of these names, which their agent.yaml do not use: outside a jail,
# as an ordinary user, each against the stand-in model.  Whether they take what a driver tells them is seen in what they do.
. tests/agents/real.sh
for agent in gemini copilot opencode qwen; do install_agent $agent; done
trap 'kill "${HELPERS[@]}" 2>/dev/null; _at_exit' EXIT

chmod 755 "$T"
mkdir -p "$T/home/.gemini" "$T/home/.copilot" "$T/home/.qwen" "$T/home/.config/opencode" "$T/ws"
echo '{ "security": { "auth": { "selectedType": "openai" } }, "telemetry": { "enabled": false } }' >"$T/home/.qwen/settings.json"
# Not every user can reach a cache in root's home.
for agent in gemini copilot opencode qwen; do
	cp -al "$AGENTS/$agent" "$T/$agent" 2>/dev/null || cp -a "$AGENTS/$agent" "$T/$agent"
done
chown -R 4242:4242 "$T/home" "$T/ws"
"${CC:-gcc}" -std=gnu17 -D_GNU_SOURCE -I. -O1 tests/agents/drive.c "${BIN%/bin}/lib/drivers.a" "${BIN%/bin}/lib/base.a" -lcjson -o "$T/drive"
ok 'what drives them' test -x "$T/drive" || finish
node tests/agents/mock-llm.mjs --port-file "$T/port" --scenarios tests/agents/scenarios --cwd "$T/ws" --log "$T/model.log" >"$T/model.out" 2>&1 &
HELPERS+=($!)
ok 'the stand-in model listens' wait_for 30 test -s "$T/port" || finish

# drive SCENARIO OPTION... PROMPT: of $agent; what came of it is in $T/out
drive() {
	local url own=()
	url=http://127.0.0.1:$(cat "$T/port")/x/$1/$agent-$RANDOM$RANDOM
	shift
	case $agent in
	gemini) own=(--program "$T/gemini/bin/node" --arg "$T/gemini/lib/bundle/gemini.js" --model gemini-2.5-pro
		--env "GOOGLE_GEMINI_BASE_URL=$url" --env GEMINI_API_KEY=placeholder) ;;
	copilot) own=(--program "$T/copilot/bin/copilot" --model gpt-5.5 --env "COPILOT_PROVIDER_BASE_URL=$url/v1"
		--env COPILOT_PROVIDER_TYPE=openai --env COPILOT_PROVIDER_API_KEY=placeholder --env COPILOT_OFFLINE=true) ;;
	qwen) own=(--program "$T/qwen/bin/node" --arg "$T/qwen/lib/cli-entry.js" --model qwen3-coder-plus
		--env "OPENAI_BASE_URL=$url/v1" --env OPENAI_API_KEY=placeholder) ;;
	opencode)
		own=(--program "$T/opencode/bin/opencode" --model mock/m --env OPENCODE_DISABLE_MODELS_FETCH=1 --env OPENCODE_DISABLE_AUTOUPDATE=1
			--env OPENCODE_DISABLE_LSP_DOWNLOAD=1 --env OPENCODE_DISABLE_DEFAULT_PLUGINS=1)
		cat >"$T/home/.config/opencode/opencode.json" <<J
{ "autoupdate": false, "share": "disabled", "small_model": "mock/m", "provider": { "mock": { "npm": "@ai-sdk/openai-compatible", "name": "Mock",
  "options": { "baseURL": "$url/v1", "apiKey": "placeholder" }, "models": { "m": { "name": "M", "tool_call": true } } } } }
J
		;;
	esac
	rm -rf "$T/ws/out"
	timeout 300 "$T/drive" --home "$T/home" --cwd "$T/ws" "${own[@]}" "${@:1:$#-1}" "$agent" "${*: -1}" >"$T/out" 2>"$T/err"
}
outcome() { json "l.outcome.$1" <"$T/out"; }
# events TYPE EXPRESSION: of each event x of that type
events() { json "e.filter(x=>x.type==='$1').map(x=>$2).join()" <"$T/out"; }
# The tools that the model was offered last, by the agent itself: titles and the like are asked for without any.
offered() { grep '"kind":"main"' "$T/model.log" | tail -n 1 | sed 's/.*"tools":\(\[[^]]*\]\).*/\1/'; }

declare -A shell=([gemini]=run_shell_command [qwen]=run_shell_command [copilot]=bash [opencode]=bash)
for agent in gemini copilot opencode qwen; do
	drive tool 'Make it.'
	is "$agent: a run" "$(outcome status)" succeeded
	is "$agent: a command" "$(events tool.result 'x.name+" "+x.ok+" "+x.output.split("\n")[0]')" "${shell[$agent]} true hello"
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
	drive mcp --mcp "mock=node:$PWD/tests/agents/mock-mcp.mjs" 'Call it.'
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
