# shellcheck shell=bash
# shellcheck disable=SC2154 # set by who sources this
# driver.sh - a real agent by a driver of its own: events, a conversation that goes on, one that was lost, errors, permissions,
# MCP, the end of a run.
#
#	. tests/agents/driver.sh
#	agent=NAME host=INJECTED header=H prefix=P model=M mcp_model=M node=PROGRAM
#	state=DIRECTORY of its conversations, below the home
#	call='NAME TITLE' of the call that writes a file
#	refused=TOOL that cannot be allowed, because=WORDS
#	prove_driver
. tests/agents/real.sh

# harness NAME LINES: lines of its head, more after "\n"
harness() { printf -- '---\nbackend: %s\n%b\n' "$agent" "$2" >"$T/etc/harnesses/$1.md"; }
run() { abctl run "$1" -s "u/$1" -p "${2:-Do it.}" --json >"$T/out" 2>"$T/err"; }
result() { json "l.result.$1" <"$T/out"; }
# events TYPE EXPRESSION: of each event x of that type
events() { json "e.filter(x=>x.type==='$1').map(x=>$2).join()" <"$T/out"; }

driver_harnesses() {
	local s
	mkdir -p "$T/etc/harnesses" "$T/etc/policy"
	for s in write tool tool-fail resume err401 hang marker mcp; do
		cat >"$T/etc/policy/$s.yaml" <<Y
extends: default
egress:
  inject:
    - { host: $host, upstream: "http://127.0.0.1:$(cat "$T/port")/x/$s/$s", header: $header, prefix: "$prefix", secret: PROOF_KEY, allow_loopback: true }
Y
		harness $s "policy: $s\nmodel: $model\nlimits: { timeoutMs: $([ $s = hang ] && echo 15000 || echo 120000) }\n---"
	done
	harness tools "tools: { allow: [\"$refused\"] }\n---"
	harness deny "policy: tool\nmodel: $model\npermissions: deny\n---"
	sed 's#/x/tool/tool"#/x/tool/ask"#' "$T/etc/policy/tool.yaml" >"$T/etc/policy/ask.yaml" # turns of its own
	harness ask "policy: ask\nmodel: $model\npermissions: ask\n---"
	harness marker "policy: marker\nmodel: $model\n---\nMARKER-APPENDED-7f3"
	harness mcp "policy: mcp\nmodel: $mcp_model\ntools: { mcp: { mock: { command: $node, args: [/workspace/mcp.mjs] } } }"
	printf 'workspace: { seed: { mcp.mjs: %s } }\n---\n' \
		"$(node -p 'JSON.stringify(require("fs").readFileSync("tests/agents/mock-mcp.mjs", "utf8"))')" >>"$T/etc/harnesses/mcp.md"
	: >"$T/etc/agentboxd.yaml"
}

prove_driver() {
	install_agent "$agent"
	trap 'kill "${HELPERS[@]}" 2>/dev/null; _at_exit' EXIT
	node tests/agents/mock-llm.mjs --port-file "$T/port" --scenarios tests/agents/scenarios --cwd /workspace --log "$T/model.log" >"$T/model.out" 2>&1 &
	HELPERS+=($!)
	ok 'the stand-in model listens' wait_for 30 test -s "$T/port" || finish
	driver_harnesses
	export PROOF_KEY=$KEY
	ok 'the daemon' start_daemon --config "$T/etc/agentboxd.yaml" --agents "$AGENTS" || finish

	run write
	is 'a run' "$(result status) $(result finalText)" 'succeeded Wrote out/hello.txt.'
	is 'a call is an event' "$(events tool.call 'x.name+" "+x.title')" "$call"
	is 'a file that it changed, too' "$(events file.changed 'x.change+" "+x.path')" 'add out/hello.txt'
	is 'it says the tokens that were metered' "$(json '(u=>[u.inputTokens,u.outputTokens].join())(e.filter(x=>x.type==="usage").pop())' <"$T/out")" \
		"$(result usage.inputTokens),$(result usage.outputTokens)"
	is 'nothing is unknown in it' "$(events agent.raw x.line)" ''
	run tool-fail
	is 'a command that fails' "$(events tool.result 'x.ok+" "+x.exitCode+" "+x.output.split("\n")[0]')" 'false 3 oops'
	run resume 'Remember heliotrope.'
	is 'the first of a conversation' "$(result status)" succeeded
	run resume 'Which word?'
	is 'the second goes on with it' "$(result finalText)" 'The word was heliotrope.'
	abctl exec u/resume -- rm -rf "/home/agent/$state" >/dev/null 2>&1
	run resume 'Which word?'
	is 'a conversation that it has lost' "$(result status)" failed
	like 'is said' "$(result error)" "lost this session's conversation.*next run begins a new one"
	run err401
	is 'an API error' "$(result status)" failed
	like 'with its reason' "$(result error)" 401
	run hang
	is 'a model that hangs' "$(result status)" timeout
	run deny
	is 'permissions: deny' "$(events permission.answered 'x.answer+" "+x.by')" 'deny harness'
	is 'the command does not run' "$(events tool.result 'x.ok+" "+x.output')" 'false The call was declined.'
	run ask &
	ok 'permissions: ask' wait_for 60 grep -q permission.asked "$T/out"
	ok 'a person allows it' abctl approve "$(json 'e[0].run' <"$T/out")"
	wait $!
	is 'the command runs' "$(events tool.result 'x.ok+" "+x.output.trim()')" 'true hello'
	run marker
	is 'the system prompt' "$(result finalText)" 'The marker is there.'
	run mcp
	is 'a tool of an MCP server' "$(events tool.result 'x.name+" "+x.ok+" "+x.output')" 'mcp__mock__mock_echo true echo: ping'
	run tools
	like 'what it cannot be told is refused' "$(cat "$T/out" "$T/err")" "$because"
	ok 'nothing is left' wait_for 20 no_jail_processes
	finish
}
