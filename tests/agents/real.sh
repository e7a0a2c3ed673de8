# shellcheck shell=bash
# real.sh - a real agent from npm in the default jail, with the stand-in model behind an injected name.
#
#	. tests/agents/real.sh
#	install_agent NAME
#	start_model; stand_in
#	start_scenarios
#	prove_key NAME [HOST THAT IT ALSO ASKS FOR]	with a harness `go` for the daemon that runs
#	models_of NAME MODEL=HOST...
#
# prove_key: a run says something and writes a file, with a system prompt; while the model is silent the jail
# is searched for the key, which the model has sent back in a header and in its text.
. tests/integration/lib.sh
. tests/integration/agent.sh

KEY=sk-proof-$RANDOM$RANDOM$RANDOM
PLANT=plant-$RANDOM$RANDOM$RANDOM
# What servers of MCP are given, which agents put variables into; and so that they do not.
export MCP_WORD='a "b" \ $HOME ${HOME} {env:HOME} {file:/etc/passwd} $$' MCP_EXPECTS
MCP_EXPECTS=$(printf %s "$MCP_WORD" | base64 -w0)
HELPERS=()

start_model() {
	[ -s "$T/scenario.json" ] || cat >"$T/scenario.json" <<J
{ "turns": [
  { "gate": "begin", "text": "Writing. {{headers}}", "chunkSize": 100000,
    "tools": [ { "name": "\$write", "args": { "path": "/workspace/out/hello.txt", "content": "hello $PLANT\n" } } ] },
  { "gate": "end", "text": "Wrote it. $PLANT {{headers}}", "chunkSize": 100000 }
] }
J
	node tests/agents/mock-llm.mjs --port-file "$T/port" --scenario "$T/scenario.json" --scenarios tests/agents/scenarios --cwd /workspace --echo \
		--log "$T/model.log" --bodies "$T/bodies" >"$T/model.out" 2>&1 &
	HELPERS+=($!)
	wait_for 30 test -s "$T/port"
}
# The same without a gate: who asks it says in the URL which of the scenarios is meant.
start_scenarios() {
	trap 'kill "${HELPERS[@]}" 2>/dev/null; _at_exit' EXIT
	node tests/agents/mock-llm.mjs --port-file "$T/port" --scenarios tests/agents/scenarios --cwd "${1:-/workspace}" \
		--log "$T/model.log" >"$T/model.out" 2>&1 &
	HELPERS+=($!)
	ok 'the stand-in model listens' wait_for 30 test -s "$T/port" || finish
	mkdir -p "$T/etc/harnesses" "$T/etc/policy"
}
open_gate() { node -e 'fetch(process.argv[1], { method: "POST" })' "http://127.0.0.1:$(cat "$T/port")/__mock/open/$1"; }
asked() { grep -q "\"kind\":\"main\",\"turn\":$1" "$T/model.log"; }

# stand_in [URL]: what the default policy injects, each of it led to the stand-in: its requests are held to the same.
stand_in() {
	local url=${1:-http://127.0.0.1:$(cat "$T/port")}
	echo 'extends: default'
	sed -n '/^egress:/,$p' policy/builtin/default.yaml | sed -e 's/^\( *\)secret: .*/\1secret: PROOF_KEY\n\1allow_loopback: true/' \
		-e "s,upstream: .*,upstream: \"$url\","
}

search() {
	local pids
	mapfile -t pids < <(jail_processes | awk '{print $2}')
	python3 tests/integration/needles.py --wire "$T/wire" "$KEY" "$PLANT" placeholder-the-key -- "${pids[@]}" >"$T/found" 2>&1
	ok 'the jail can be searched' test $? = 0
	tail -n 1 "$T/found"
	while read -r what place; do
		ok "what it has is found: $what, $place" grep -qP "^$what\t$place\t" "$T/found"
	done <<X
placeholder-the-key environ
placeholder-the-key memory
placeholder-the-key proc
placeholder-the-key wire
$PLANT file
$PLANT wire
$PLANT memory
X
	is 'the key is nowhere in it' "$(grep "^$KEY" "$T/found")" ''
}

# models_of NAME MODEL=HOST...: does each of these models answer a run, through that injected name?
models_of() {
	local name=$1 pair
	shift
	install_agent "$name"
	trap 'kill "${HELPERS[@]}" 2>/dev/null; _at_exit' EXIT
	echo '{ "turns": [ { "text": "Yes.", "repeat": -1 } ] }' >"$T/scenario.json"
	ok 'the stand-in model listens' start_model || finish
	mkdir -p "$T/etc/harnesses" "$T/etc/policy"
	stand_in >"$T/etc/policy/models.yaml"
	for pair in "$@"; do
		printf -- '---\nbackend: %s\npolicy: models\nmodel: %s\n---\n' "$name" "${pair%=*}" >"$T/etc/harnesses/${pair#*=}.md"
	done
	: >"$T/etc/agentboxd.yaml"
	export PROOF_KEY=$KEY
	ok 'the daemon' start_daemon --config "$T/etc/agentboxd.yaml" --agents "$AGENTS" || finish
	for pair in "$@"; do
		: >"$T/model.log"
		abctl run "${pair#*=}" -s "u/${pair#*=}" -p 'Say yes.' --json >"$T/events" 2>"$T/err"
		is "$pair answers" "$(json 'l.result.status+" "+l.result.finalText' <"$T/events")" 'succeeded Yes.'
		like 'it was asked, with the key' "$(cat "$T/model.log")" "\"key\":\"(Bearer )?$KEY\",\"kind\":\"main\".*\"model\":\"$(basename "${pair%=*}")\""
	done
	finish
}

prove_key() {
	ok 'the agent starts' sh "harnesses/agents/$1/smoke.sh" "$AGENTS/$1"
	abctl run go -s u/g -p 'Write out/hello.txt.' --json >"$T/events" 2>"$T/err" &
	local run=$! wire
	# opencode first asks a package registry in vain, again and again: half a minute, on a busy machine over two
	ok 'it asks the model' wait_for 300 asked 0 || finish
	python3 tests/integration/wire.py "$(jail_processes | awk 'END { print $2 }')" "$T/wire" >"$T/wire.out" 2>&1 &
	wire=$!
	HELPERS+=("$wire")
	wait_for 20 grep -q ready "$T/wire.out"
	open_gate begin
	ok 'and once more, with the result of a tool' wait_for 120 asked 1
	sleep 1 # what the agent does on the side
	kill "$wire"
	wait "$wire"
	ok 'no packet was missed' test $? = 0
	search
	open_gate end
	wait "$run"
	is 'the run succeeds' "$(json 'l.result.status' <"$T/events")" succeeded
	like 'with its text' "$(json 'l.result.finalText' <"$T/events")" "Wrote it\. $PLANT"
	like 'in which the key was masked' "$(json 'l.result.finalText' <"$T/events")" "\*{${#KEY}}"
	is 'its file is as the model said' "$(abctl artifacts "$(json 'l.result.runId' <"$T/events")" get out/hello.txt)" "hello $PLANT"
	ok 'the model was told the system prompt' grep -rq 'magic word is heliotrope' "$T/bodies"
	like 'nothing else was asked for' "$(json 'e.filter(x=>x.type==="egress.denied").map(x=>x.host).join(" ")' <"$T/events")" \
		"^(${2:-nothing} ?)*\$"
}
