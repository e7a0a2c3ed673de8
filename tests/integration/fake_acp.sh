#!/bin/sh
# A stand-in for an agent that speaks the Agent Client Protocol and does what its prompt says, word by
# word:
#	say:TEXT   says it
#	write:TEXT writes out/x and tells it as a change
#	ask        asks whether it may run `touch asked`, and does what it hears
#	which      asks a question with a text for an answer
#	file       asks the host to read a file for it
#	hang       waits until it is told to stop
#	fail       answers with an error
#	stay       stays when its stdin ends
# Each session's prompts are in ~/.parrot/SESSION; it refuses to load one that it does not have.
tell() { printf '{"jsonrpc":"2.0",%s}\n' "$1"; }
update() { tell "\"method\":\"session/update\",\"params\":{\"sessionId\":\"$session\",\"update\":{$1}}"; }
say() { update "\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$1 \"}"; }
member() { printf %s "$line" | sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
answer() { tell "\"id\":$id,$1"; }
call() { update "\"sessionUpdate\":\"$1\",\"toolCallId\":\"$2\",$3"; }
stay='' mode=none
word() {
	case $1 in
	say:*) say "${1#*:}" ;;
	mode) say "$mode" ;;
	write:*)
		mkdir -p out && echo "${1#*:}" >out/x
		call tool_call w '"title":"write","kind":"edit","status":"pending","rawInput":{"path":"out/x"}'
		call tool_call_update w "\"status\":\"completed\",\"content\":[{\"type\":\"diff\",\"path\":\"$PWD/out/x\",\"oldText\":null,\"newText\":\"${1#*:}\\n\"}]"
		;;
	ask)
		tell "\"id\":\"p\",\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"$session\",\"toolCall\":{\"toolCallId\":\"a\",\"title\":\"touch asked\",\"kind\":\"execute\",\"rawInput\":{\"command\":\"touch asked\"}},\"options\":[{\"optionId\":\"yes\",\"kind\":\"reject_once\"},{\"optionId\":\"no\",\"kind\":\"allow_once\"}]}"
		read -r line
		case $line in
		*'"optionId":"no"'*) touch asked && call tool_call_update a '"status":"completed"' && say allowed ;;
		*) call tool_call_update a '"status":"failed"' && say denied ;;
		esac
		;;
	which)
		tell '"id":"q","method":"elicitation/create","params":{"mode":"form","message":"Which colour?","requestedSchema":{"type":"object","properties":{"colour":{"type":"string"}}}}'
		read -r line
		say "colour:$(member action):$(member colour)"
		;;
	file)
		tell '"id":7,"method":"fs/read_text_file","params":{"path":"/etc/shadow"}'
		read -r line
		say "host:$(printf %s "$line" | sed 's/.*"code":\(-[0-9]*\).*/\1/')"
		;;
	hang)
		read -r line
		stop=cancelled
		;;
	stay) stay=1 ;;
	esac
}
while read -r line; do
	id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
	case $(member method) in
	initialize) answer '"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}' ;;
	session/new)
		session=s$$
		mkdir -p ~/.parrot && : >~/.parrot/$session
		answer "\"result\":{\"sessionId\":\"$session\",\"modes\":{\"availableModes\":[{\"id\":\"free\"},{\"id\":\"careful\"}]}}"
		;;
	session/load)
		session=$(member sessionId)
		if [ -f ~/.parrot/"$session" ]; then
			say old
			answer '"result":{"modes":{"availableModes":[{"id":"free"},{"id":"careful"}]}}'
		else
			answer '"error":{"code":-32002,"message":"no such session"}'
		fi
		;;
	session/set_mode)
		mode=$(member modeId)
		answer '"result":{}'
		;;
	session/prompt)
		text=$(member text) prompt=$id stop=end_turn
		case $line in
		*'<system-instructions>'*) say "told:$(printf %s "$line" | sed 's/.*<system-instructions>.n\(.*\).n<.system-inst.*/\1/')" ;;
		esac
		[ -s ~/.parrot/"$session" ] && say "after:$(tr -s ' \n' ',' <~/.parrot/"$session")"
		echo "$text" >>~/.parrot/"$session"
		error=''
		for w in $text; do
			[ "$w" = fail ] && error=1
			word "$w"
		done
		id=$prompt
		if [ "$error" ]; then
			answer '"error":{"code":-32603,"message":"Internal error","data":{"details":"the model said no"}}'
		else
			answer "\"result\":{\"stopReason\":\"$stop\"}"
		fi
		;;
	esac
done
[ "$stay" ] && sleep 600
exit 0
