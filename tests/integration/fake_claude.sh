#!/bin/sh
# A stand-in for Claude Code that does what its prompt says, word by word:
#	ask:ID     asks whether it may run Bash
#	withdraw:ID  takes the question back
#	hear       waits for a line and tells what it was
#	say:TEXT   says it
#	flood:N    says N short lines
#	sleep:N    does nothing
#	result     says that it is done
# What stands in front of its prompt of an earlier conversation goes to the file `context`.
# Sourced by no one: it is the program of agents in tests/integration/81-ask.t.
say() { printf '{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"%s\\n"}]}}\n' "$1"; }
text() { printf %s "$1" | sed 's/.*"text":"\([^"]*\)".*/\1/'; }
result() { printf '{"type":"result","subtype":"%s","is_error":%s,"result":"%s","session_id":"s1","num_turns":1}\n' "$1" "$2" "$3"; }
heard() {
	case $1 in
	*'"subtype":"interrupt"'*) result error_during_execution true interrupted; exit 1 ;;
	*'"behavior":"allow"'*) say "heard allow" ;;
	*'"behavior":"deny"'*) say "heard deny" ;;
	*'"type":"user"'*) say "heard message $(text "$1")" ;;
	*) say "heard something else" ;;
	esac
}
read -r line || exit 7
printf '{"type":"system","subtype":"init","session_id":"s1","cwd":"/workspace","tools":[]}\n'
case " $* " in *' --resume s1 '*) say resumed ;; esac
case $line in
*'</earlier-conversation>'*)
	printf '%s\n' "$line" >context
	line=$(printf %s "$line" | sed 's/.*<.earlier-conversation>.n.n/"text":"/')
	;;
esac
for word in $(text "$line"); do
	arg=${word#*:}
	case $word in
	ask:*)
		printf '{"type":"control_request","request_id":"%s","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"touch %s"},"tool_use_id":"call-%s"}}\n' "$arg" "$arg" "$arg"
		;;
	withdraw:*) printf '{"type":"control_cancel_request","request_id":"%s"}\n' "$arg" ;;
	hear)
		read -r line || exit 8
		heard "$line"
		;;
	say:*) say "$arg" ;;
	flood:*) yes '{}' | head -n "$arg" ;;
	sleep:*) sleep "$arg" ;;
	result) result success false "done" ;;
	esac
done
# until its stdin ends, as the real one
while read -r line; do heard "$line"; done
exit 0
