#!/usr/bin/env bash
# Which of the real agents has its files written by agentbox-acp, and that they are: each of them in its jail, with what it
# says and hears kept in its home.
. tests/agents/real.sh
AGENTS_TRIED='qwen opencode copilot gemini'
for agent in $AGENTS_TRIED; do install_agent "$agent"; done

mkdir -p "$T/share"
cp -r harnesses "$T/share/"
declare -A model=([qwen]=qwen3-coder-plus [opencode]=anthropic/claude-sonnet-4-5 [copilot]=gpt-5.5 [gemini]=gemini-2.5-pro)
start_scenarios
for agent in $AGENTS_TRIED; do
	yaml=$T/share/harnesses/agents/$agent/agent.yaml
	# Below a shell that keeps both sides; $program and its arguments are the shell's.
	program=$(sed -n 's/^program: //p' "$yaml")
	sed -i -e 's#^program:.*#program: /bin/sh#' \
		-e "s#^args: \[#args: [-c, 'tee heard | \"\$@\" | tee said', sh, $program, #" "$yaml"
	stand_in | sed "s#\(upstream: \"[^\"]*\)\"#\1/x/write/$agent\"#" >"$T/etc/policy/$agent.yaml"
	printf -- '---\nbackend: %s\npolicy: %s\nmodel: %s\nartifacts: [out/**]\n---\n' "$agent" "$agent" "${model[$agent]}" >"$T/etc/harnesses/$agent.md"
done
: >"$T/etc/agentboxd.yaml"
export PROOF_KEY=$KEY
ok 'the daemon' start_daemon --config "$T/etc/agentboxd.yaml" --agents "$AGENTS" --share "$T/share" || finish

# kept FILE: what the agent has said, or heard
kept() { abctl exec "u/$agent" -- cat "/workspace/$1" 2>/dev/null; }
for agent in $AGENTS_TRIED; do
	abctl run "$agent" -s "u/$agent" -p 'Write out/hello.txt.' --json >"$T/events" 2>"$T/err"
	is "$agent: its file is there" "$(json 'l.result.artifacts.map(a=>a.path).join()' <"$T/events")" out/hello.txt
	like "$agent: it was offered what its agent.yaml says" "$(kept heard | head -n 1)" \
		"\"fs\":\{\"readTextFile\":$([ "$agent" = gemini ] && echo false || echo true),.*\"terminal\":true"
	is "$agent: it is told once" "$(json 'e.filter(x=>x.type==="file.changed").length<2' <"$T/events")" true
	asks=0
	case $agent in qwen | opencode) asks=1 ;; esac
	is "$agent: asks for its file to be written" "$(kept said | grep -c '"method":"fs/write_text_file"')" $asks
	is "$agent: is refused nothing" "$(kept heard | grep -c -- '-32601.*this host')" "$(kept said | grep -c '"method":"craft/')"
done
finish
