#!/usr/bin/env bash
# abctl agent install against the real registry: a small agent with a Node of its own, into an empty directory; what came is what is
# pinned, and it starts.
. tests/agents/real.sh

AGENTS=$T/agents
install_agent auggie
record() { json "l.$1" <"$AGENTS/auggie/INSTALLED"; }
pinned() { sed -n "s/^ *$1: *\"\{0,1\}\([^\"]*\)\"\{0,1\}\$/\1/p" harnesses/agents/auggie/agent.yaml; }
is 'the pinned package' "$(record version) $(record integrity)" "$(pinned version | head -n 1) $(pinned integrity | head -n 1)"
is 'and the pinned Node' "$(record node.integrity)" "$(pinned integrity | tail -n 1)"
is 'all of it is root'"'"'s, and files or directories' "$(find "$AGENTS" \( ! -uid 0 -o ! -type f ! -type d -o -perm /022 \) -print)" ''
ok 'it starts' sh harnesses/agents/auggie/smoke.sh "$AGENTS/auggie"
was=$(find "$AGENTS" -printf '%P %i %T@\n' | sort)
ok 'again' abctl agent install auggie --agents "$AGENTS"
is 'nothing to do' "$(find "$AGENTS" -printf '%P %i %T@\n' | sort)" "$was"
finish
