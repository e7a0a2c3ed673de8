# shellcheck shell=bash
# matrix.sh - one real agent in jails of one daemon: where its key is, and all cases of matrix.mjs.
#
#	. tests/agents/matrix.sh
#	[mcp_model=MODEL] [also=HOST] matrix AGENT MODEL
#
# mcp_model: where tools of MCP servers are tried with another; also: what it asks for besides its model, in vain.
# CASE=REGEX tries only some cases; KEEP=DIR keeps events, logs and state there; MATRIX_WRITE=1 writes what was found into
# docs/AGENTS.md.
. tests/agents/real.sh

# Lines of matrix.mjs as tests.
cases() {
	local name verdict found took
	while IFS=$'\t' read -r name verdict found took; do
		is "$AGENT: $name ($took s): $found" "$verdict" ok
	done
}

matrix() {
	export T BIN AGENT=$1 MODEL=$2 MCP_MODEL=${mcp_model:-$2} PROOF_KEY=$KEY MCP_KEY=mcp-$PLANT PORT MCP_PORT CGROUP
	install_agent "$AGENT"
	trap 'kill "${HELPERS[@]}" 2>/dev/null; _at_exit' EXIT
	ok 'the stand-in model listens' start_model || finish
	node tests/agents/mock-mcp.mjs --port-file "$T/mcp-port" >"$T/mcp.out" 2>&1 &
	HELPERS+=($!)
	ok 'the MCP server listens' wait_for 30 test -s "$T/mcp-port" || finish
	PORT=$(cat "$T/port") MCP_PORT=$(cat "$T/mcp-port")
	mkdir -p "$T/etc/policy" "$T/etc/harnesses"
	stand_in >"$T/etc/policy/model.yaml"
	stand_in UPSTREAM >"$T/policy.yaml"
	node tests/agents/matrix.mjs configure
	printf -- '---\nbackend: %s\npolicy: model\nmodel: %s\nartifacts: [out/**]\nlimits: { timeoutMs: 600000 }\n---\nThe magic word is heliotrope.\n' \
		"$1" "$2" >"$T/etc/harnesses/go.md"
	echo 'runs: { pool: 0 }' >"$T/etc/agentboxd.yaml"
	ok 'the daemon' start_daemon --config "$T/etc/agentboxd.yaml" --agents "$AGENTS" || finish
	[ -n "${CASE:-}" ] || prove_key "$1" "${also:-}"
	cases < <(node tests/agents/matrix.mjs run 2>&1)
	stop_daemon
	ok 'a new daemon' start_daemon --config "$T/etc/agentboxd.yaml" --agents "$AGENTS" || finish
	cases < <(node tests/agents/matrix.mjs restarted 2>&1)
	ok 'nothing is left' wait_for 20 no_jail_processes
	is 'the keys are in no event, log, home, file of state' "$(grep -rlaE "$KEY|$MCP_KEY" "$T/state" "$T/log" "$T"/events*)" ''
	[ -z "${KEEP:-}" ] || cp -a "$T" "$KEEP"
	[ -z "${MATRIX_WRITE:-}" ] || node tests/agents/matrix.mjs told docs/AGENTS.md write
	[ -n "${CASE:-}" ] || is 'docs/AGENTS.md says what was found' "$(node tests/agents/matrix.mjs told docs/AGENTS.md)" ''
	finish
}
