#!/usr/bin/env bash
# Agents: the list, what each can, and which one is installed.
. tests/integration/lib.sh

start_daemon

ls=$(abctl agent ls)
like 'agent ls' "$ls" '^AGENT +DRIVER +VERSION +INSTALLED +DESCRIPTION'
like 'one that is not installed' "$ls" '^claude +claude +[0-9.]+ +- +Claude Code'
like 'and the built-in one' "$ls" '^exec +exec +- +- +any command'
is 'as JSON' "$(abctl agent ls --json | json 'l.agents.find(a=>a.name=="codex").installed')" null

mkdir "$T/state/agents/codex"
echo 0.1.2 >"$T/state/agents/codex/VERSION"
is 'the version that is installed' "$(abctl agent show codex --json | json 'l.installed')" 0.1.2
like 'for people' "$(abctl agent show codex)" '^installed: 0.1.2'
printf '\033[31mred' >"$T/state/agents/codex/VERSION"
is 'no escapes' "$(abctl agent show codex --json | json 'l.installed')" null
head -c 100000 /dev/zero >"$T/state/agents/codex/VERSION"
is 'no endless one' "$(abctl agent show codex --json | json 'l.installed')" null
rm -r "$T/state/agents/codex"
abctl agent show codx 2>"$T/err"
like 'an unknown agent is usage, and those there are' "$? $(cat "$T/err")" "^100 abctl: usage: no agent 'codx' in harnesses/agents \\(there are: exec, .*codex"
for bad in 'ls --file x' 'show codex --registry https://r.test' 'probe codex --agents /x' 'rm codex --policy p'; do
	# shellcheck disable=SC2086 # words
	is "abctl agent $bad" "$(abctl agent $bad 2>&1 | head -n 1 | sed 's/ takes no --.*/ takes no/')" "abctl: usage: abctl agent ${bad%% *} takes no"
done

like 'capabilities' "$(abctl agent capabilities | grep -E '^(ABILITY|max_turns)')" '^max_turns .*yes.*enforced'
one=$(abctl agent capabilities copilot)
like 'of one agent' "$one" '^cost +no +it tells what it has cost$'
like 'what is enforced, and how' "$one" '^max_turns +enforced +it stops by itself .*: the first event of the turn after'
is 'as JSON' "$(abctl agent capabilities copilot --json | json 'l.abilities.cost')" no
is 'all abilities have one name' "$(abctl agent capabilities --json |
	json 'l.abilities.map(x=>x.name).join()==Object.keys(l.agents[0].abilities).join()')" true

# What docs/AGENTS.md says of them is what they can.
abctl agent capabilities --json >"$T/can.json"
[ -z "${GOLDEN_WRITE:-}" ] || node tools/agent-matrix.mjs docs/AGENTS.md --write <"$T/can.json"
is 'docs/AGENTS.md has the matrix (GOLDEN_WRITE=1 writes it)' "$(node tools/agent-matrix.mjs docs/AGENTS.md <"$T/can.json")" ''
for name in $(json 'l.abilities.map(x=>x.name).join(" ")' <"$T/can.json"); do
	ok "and tells what $name is" grep -q "^| \`$name\` | .* | [a-z]" docs/AGENTS.md
done
stop_daemon

# agents of one's own
ok 'what came along is in order' abctl agent lint harnesses/agents/*/agent.yaml
lint() { printf '%s\n' "$@" >"$T/agent.yaml" && abctl agent lint "$T/agent.yaml" 2>&1; echo "$?"; }
is 'a file that is in order' "$(lint 'name: x' 'driver: acp' 'program: /bin/x' 'acp: { mode: m }')" 0
like 'a driver that is mistyped' "$(lint 'name: x' 'driver: acpp' 'program: /bin/x' | tr '\n' ' ')" \
	"agent.yaml:2: unknown driver 'acpp' .did you mean 'acp'.* 1 $"
like 'what is for another driver' "$(lint 'name: x' 'driver: pi' 'program: /bin/x' 'acp: { mode: m }' | tr '\n' ' ')" \
	"agent.yaml:4: 'acp' is for the driver acp; this one is 'pi' 1 $"
mkdir -p "$T/share/harnesses/agents/odd" "$T/share/harnesses/agents/broken"
printf 'name: odd\ndriver: morse\nprogram: /bin/true\n' >"$T/share/harnesses/agents/odd/agent.yaml"
printf 'name: broken\ndriver: acp\nprogram: /bin/true\ncannot: [resum]\n' >"$T/share/harnesses/agents/broken/agent.yaml"
# agent NAME SCRIPT: one that is a script
agent() {
	mkdir -p "$T/share/harnesses/agents/$1" "$T/state/agents/$1/bin"
	printf 'name: %s\ndriver: acp\nprogram: /opt/agent/bin/x\nprobe: [/opt/agent/bin/x, --version]\nversion: 1.2.3\ninstalled_files: true\nenv: { WHO: "me and you" }\n' \
		"$1" >"$T/share/harnesses/agents/$1/agent.yaml"
	printf '#!/bin/sh\n%s\n' "$2" >"$T/state/agents/$1/bin/x"
	echo "${3:-1.2.3}" >"$T/state/agents/$1/VERSION"
	chmod -R go+rX "$T/state/agents/$1"
	chmod 755 "$T/state/agents/$1/bin/x"
}
agent fine 'echo; echo "fine v1.2.3 ($1)"; echo update now'
agent dotted 'echo Dotted 1.2.3.'
agent other 'echo "other 1.2.34"'
agent older 'echo 1.2.3' 1.2.2
agent fails 'echo "no library" >&2; echo half; exit 3'
agent mute 'cat'
agent paints 'printf "\033[31m1.2.3\033[0m\n"'
agent loud 'yes 1.2.3'
agent knows 'touch /opt/agent/bin/y 2>/dev/null && echo writable; echo "$WHO $HOME $PATH"'
agent gone ''
rm "$T/state/agents/gone/bin/x"
agent away ''
rm -r "$T/state/agents/away"
printf 'name: shy\ndriver: acp\nprogram: /bin/true\n' >"$T/share/harnesses/agents/odd/shy.yaml"
mkdir "$T/share/harnesses/agents/shy"
mv "$T/share/harnesses/agents/odd/shy.yaml" "$T/share/harnesses/agents/shy/agent.yaml"
start_daemon --share "$T/share"

# probe NAME: its exit code and what it says
probe() { abctl agent probe "$1" 2>"$T/err" >"$T/out"; echo "$? $(cat "$T/out")"; }
is 'probe: it starts, and is what is pinned' "$(probe fine)" '0 fine 1.2.3 starts'
is 'as JSON' "$(abctl agent probe fine --json)" \
	'{"agent":"fine","ok":true,"version":"1.2.3","installed":"1.2.3","said":"fine v1.2.3 (--version)"}'
is 'with a full stop behind it' "$(probe dotted)" '0 dotted 1.2.3 starts'
is 'another version' "$(probe other)" "1 other: it says 'other 1.2.34', pinned is 1.2.3"
is 'as JSON' "$(abctl agent probe other --json | json 'l.ok+" "+l.reason')" "false it says 'other 1.2.34', pinned is 1.2.3"
is 'one that was installed as another' "$(probe older)" \
	'1 older: installed as 1.2.2, pinned is 1.2.3; remedy: abctl agent install older'
is 'one that fails' "$(probe fails)" '1 fails: it does not start: exit code 3: half'
like 'and what it says of that' "$(cat "$T/err")" 'no library'
is 'one that says nothing' "$(probe mute)" '1 mute: it does not tell its version'
like 'one that is not there' "$(probe gone)" '^1 gone: it does not start: exit code 127$'
is 'one that is not installed' "$(probe away)" '1 away: it is not installed; remedy: abctl agent install away, or a file VERSION in the tree that you have put there'
is 'one without a probe' "$(probe shy)" '1 shy: its agent.yaml has no probe'
is 'no escapes reach the terminal' "$(abctl agent probe paints | tr -d -c '\033' | wc -c)" 0
like 'one that does not stop' "$(probe loud; cat "$T/err")" '^111 $'
like 'is not waited for' "$(cat "$T/err")" 'abctl: system: the output of the agent'
is 'it has its environment and cannot write to its files' "$(abctl agent probe knows --json | json 'l.said')" \
	'me and you /home/agent /opt/agent/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
is 'a jail may have an agent' "$(abctl jail --agent dotted -- /opt/agent/bin/x)" 'Dotted 1.2.3.'
is 'and a variable of one'"'"'s own' "$(abctl jail --agent fine --env WHO=they -- sh -c 'echo $WHO')" they
abctl jail --agent none -- true 2>"$T/err"
like 'an agent that does not exist' "$? $(cat "$T/err")" "^100 abctl: usage: no agent 'none' in harnesses/agents \\(there are"
abctl jail --agent away -- true 2>"$T/err"
like 'one that is not installed' "$? $(cat "$T/err")" "^111 abctl: system: agent 'away' is not installed"
ok 'nothing is left' wait_for 20 no_jail_processes

# A run whose agent is not installed says so once.
mkdir -p "$T/state/agents" && printf -- '---\nbackend: away\n---\n' >"$T/share/harnesses/away.md"
ok 'its harness is there' wait_for 10 sh -c "'$BIN/abctl' --socket '$T/sock' harness ls | grep -q ^away"
abctl run away -s u/g -p x >"$T/out" 2>&1
is 'a run of an agent that is not installed' $? 111
is 'says so once' "$(grep -c 'is not installed' "$T/out")" 1
is 'a driver that does not exist' "$(abctl agent show odd --json | json 'l.error')" "there is no driver 'morse'"
like 'a file that does not parse' "$(abctl agent ls --json | json 'l.agents.find(a=>a.name=="broken").error')" \
	"broken/agent.yaml:4: unknown ability 'resum' \(did you mean 'resume'\?\)"
finish
