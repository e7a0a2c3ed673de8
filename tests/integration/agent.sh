# shellcheck shell=bash
# agent.sh - a real agent, installed as an operator does it: sourced after lib.sh.
#
#	install_agent NAME	into $AGENTS, which tests share; where it cannot be had all is skipped
AGENTS=${XDG_CACHE_HOME:-$HOME/.cache}/agentbox/installed

_fetch_agent() {
	mkdir -p "$T/npm/policy" && : >"$T/npm/agentboxd.yaml" &&
		tools/registry-policy.sh >"$T/npm/policy/install.yaml" &&
		start_daemon --config "$T/npm/agentboxd.yaml" --agents "$AGENTS" &&
		abctl agent install "$1" --registry "$(npm config get registry)"
}

install_agent() {
	mkdir -p "$AGENTS"
	# One that is there is found so without a daemon.
	abctl agent install "$1" --agents "$AGENTS" >"$T/install" 2>&1 && return
	_fetch_agent "$1" >"$T/install" 2>&1 || skip_all "the agent's package cannot be fetched: $(tail -n 1 "$T/install")"
	stop_daemon
	: >"$T/log"
}
