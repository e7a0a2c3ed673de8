# shellcheck shell=bash
# drive.sh - drivers and real agents outside a jail, as an ordinary user, against the stand-in model.
#
#	. tests/agents/drive.sh
#	drive_begin NAME...
#	agent=NAME; [turns=NAME] drive SCENARIO OPTION... PROMPT	what came of it is in $T/out
#
# turns: the scenario goes on where the last run of this name has left it.
. tests/agents/real.sh

drive_begin() {
	local name
	for name; do install_agent "$name"; done
	chmod 755 "$T"
	mkdir -p "$T/home/.gemini" "$T/home/.copilot" "$T/home/.qwen" "$T/home/.config/opencode" "$T/ws"
	echo '{ "security": { "auth": { "selectedType": "openai" } }, "telemetry": { "enabled": false } }' >"$T/home/.qwen/settings.json"
	# Not every user can reach a cache in root's home.
	for name; do
		cp -al "$AGENTS/$name" "$T/$name" 2>/dev/null || cp -a "$AGENTS/$name" "$T/$name"
	done
	chown -R 4242:4242 "$T/home" "$T/ws"
	"${CC:-gcc}" -std=gnu17 -D_GNU_SOURCE -I. -O1 tests/agents/drive.c "${BIN%/bin}/lib/drivers.a" "${BIN%/bin}/lib/base.a" -lcjson -o "$T/drive"
	ok 'what drives them' test -x "$T/drive" || finish
	start_scenarios "$T/ws"
}

drive() {
	local url own=()
	: "${agent:?}"
	url=http://127.0.0.1:$(cat "$T/port")/x/$1/$agent-${turns:-$RANDOM$RANDOM}
	shift
	case $agent in
	claude) own=(--program "$T/claude/bin/claude" --model claude-sonnet-4-5 --env "ANTHROPIC_BASE_URL=$url"
		--env ANTHROPIC_API_KEY=placeholder) ;;
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
