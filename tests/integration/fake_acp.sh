#!/bin/sh
# A stand-in for an agent that speaks the Agent Client Protocol and does what its prompt says, word by
# word:
#	say:TEXT   says it
#	env:NAME   says what that variable has, in two pieces
#	write:TEXT writes out/x and tells it as a change
#	ask        asks whether it may run `touch asked`, and does what it hears
#	which      asks a question with a text for an answer
#	file       asks for a file that it may not read
#	get:PATH   asks for a file, and says what it hears
#	put:TEXT   asks for out/put to be written
#	term:TEXT  asks for a terminal that prints TEXT and fails, in a call
#	flood      asks for a terminal that prints for ever, and ends it
#	hang       waits until it is told to stop
#	fail       answers with an error
#	stay       stays when its stdin ends
#	pid        says when its process began, which tells it from others
#	later:WHAT does that a moment after its answer: `say`, or `exit`
# What stands in front of its prompt of an earlier conversation goes to the file `context`.
# Each session's prompts are in ~/.parrot/SESSION; it refuses to load one that it does not have.
tell() { printf '{"jsonrpc":"2.0",%s}\n' "$1"; }
update() { tell "\"method\":\"session/update\",\"params\":{\"sessionId\":\"$session\",\"update\":{$1}}"; }
say() { update "\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$1 \"}"; }
member() { printf %s "$line" | sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
answer() { tell "\"id\":$id,$1"; }
call() { update "\"sessionUpdate\":\"$1\",\"toolCallId\":\"$2\",$3"; }
# The line that answers it.
request() {
	tell "\"id\":7,\"method\":\"$1\",\"params\":{\"sessionId\":\"$session\",$2}"
	read -r line
}
stay='' mode=none
word() {
	case $1 in
	say:*) say "${1#*:}" ;;
	mode) say "$mode" ;;
	env:*)
		value=$(printenv "${1#*:}")
		update "\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"${value%????????}\"}"
		say "${value#"${value%????????}"}"
		;;
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
		request fs/read_text_file '"path":"/etc/shadow"'
		say "host:$(printf %s "$line" | sed 's/.*"code":\(-[0-9]*\).*/\1/')"
		;;
	get:*)
		request fs/read_text_file "\"path\":\"${1#*:}\""
		say "got:$(printf %s "$line" | sed 's/.*"\(code\|content\)":"*\([^",}]*\).*/\2/')"
		;;
	put:*)
		request fs/write_text_file "\"path\":\"$PWD/out/put\",\"content\":\"${1#*:}\""
		case $line in *'"result":{}'*) say put ;; esac
		;;
	term:*)
		request terminal/create "\"command\":\"printf\",\"args\":[\"%s\\\\n\",\"${1#*:}\"]"
		call tool_call t "\"title\":\"shell\",\"kind\":\"execute\",\"status\":\"in_progress\",\"rawInput\":{\"command\":\"printf\"},\"content\":[{\"type\":\"terminal\",\"terminalId\":\"$(member terminalId)\"}]"
		terminal=$(member terminalId)
		request terminal/wait_for_exit "\"terminalId\":\"$terminal\""
		request terminal/release "\"terminalId\":\"$terminal\""
		call tool_call_update t '"status":"completed"'
		;;
	flood)
		request terminal/create '"command":"yes"'
		terminal=$(member terminalId)
		sleep 1
		request terminal/kill "\"terminalId\":\"$terminal\""
		request terminal/wait_for_exit "\"terminalId\":\"$terminal\""
		say "flood:$(member signal)"
		;;
	hang)
		read -r line
		stop=cancelled
		;;
	stay) stay=1 ;;
	pid) say "pid:$(cut -d ' ' -f 22 /proc/$$/stat)" ;;
	later:say) (sleep 0.5; say late) & ;;
	later:exit) (sleep 0.5; kill -9 $$) & ;;
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
		prompt=$id stop=end_turn
		case $line in
		*'</earlier-conversation>'*)
			printf '%s\n' "$line" >context
			line=$(printf %s "$line" | sed 's/.*<.earlier-conversation>.n.n/"text":"/')
			;;
		esac
		text=$(member text)
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
