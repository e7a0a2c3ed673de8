#!/usr/bin/env bash
# A session goes on: with the agent's own conversation, and where another agent takes over, or it is
# lost, with what was said before as text.
. tests/integration/lib.sh
. tests/integration/runs.sh
. tests/integration/parrot.sh

mkdir -p "$T/agents/claude/bin"
install -m 755 tests/integration/fake_claude.sh "$T/agents/claude/bin/claude"
for how in auto native transcript none; do
	harness "c-$how" 'backend: claude' 'model: m' 'policy: demo' "resume: $how"
	harness "p-$how" 'backend: parrot' 'policy: demo' "resume: $how"
done
harness c 'backend: claude' 'model: m' 'policy: demo'
harness p 'backend: parrot' 'policy: demo'
script told 'cat' 'resume: transcript'
script plain 'cat'
daemon() { start_daemon --config "$T/etc/agentboxd.yaml" --share "$T/share" --agents "$T/agents"; }
daemon || { echo "not ok 1 - start"; echo 1..1; exit 1; }

# go HARNESS SESSION PROMPT: its events are in $T/out
go() { timeout 120 "$BIN/abctl" --socket "$T/sock" run "$1" -s "u/$2" -p "$3" --json >"$T/out" 2>"$T/err"; }
# under_way HARNESS SESSION PROMPT WORD: $id is a run without a client, of which there is this word
under_way() {
	abctl run "$1" -s "u/$2" -p "$3" --detach --json >"$T/run"
	id=$(json 'l.runId' <"$T/run")
	wait_for 20 logged "$4"
}
logged() { abctl logs "$id" --json | grep -q "$1"; }
said() { json 'e.filter(x=>x.type==="agent.message").map(x=>x.text.trim()).join()' <"$T/out"; }
# what session.resumed says, without ids
resumed() { json 'e.filter(x=>x.type==="session.resumed").map(x=>[x.how,x.lost,x.fromBackend,x.runs,x.cut,x.fromRun?"of "+(x.fromRun===x.run?"itself":"another"):""].join(" ")).join()' <"$T/out"; }
run_id() { json 'l.run' <"$T/out"; }
from() { json 'e.find(x=>x.type==="session.resumed").fromRun' <"$T/out"; }
context() { timeout 60 "$BIN/abctl" --socket "$T/sock" exec "u/$1" -- cat context; }

go c a 'say:heliotrope result'
is 'a first run resumes nothing' "$(resumed)" ''
first=$(run_id)
go c a 'say:two result'
is 'the next one goes on with its own conversation' "$(said)" resumed,two
is 'and says so' "$(resumed)" 'native false claude   of another'
is 'from which run' "$(from)" "$first"
second=$(run_id)
go p a 'say:three write:x'
is 'another agent begins' "$(said | tr -d ' ')" three
is 'with what came before' "$(resumed)" 'transcript false claude 2 false of another'
is 'up to the last run' "$(from)" "$second"
is 'how much is told' "$(json 'e.find(x=>x.type==="session.resumed").bytes>500' <"$T/out")" true
context a >"$T/context"
like 'its prompt had what the user asked' "$(cat "$T/context")" 'the user, to claude:.n\| say:heliotrope result.n'
like 'and what was answered' "$(cat "$T/context")" 'claude:.n\| heliotrope.n'
like 'in front of the request' "$(cat "$T/context")" 'n</earlier-conversation>.n.nsay:three write:x"'
go c a 'say:four result'
is 'the first agent goes on with its own and what came since' "$(resumed)" 'native+transcript false parrot 1 false of another'
is 'as it says' "$(said)" resumed,four
context a >"$T/context"
is 'it is not told again what it knows' "$(grep -c heliotrope "$T/context")" 0
like 'but what it does not' "$(cat "$T/context")" 'the user, to parrot:.n\| say:three.*parrot, at work:.n\| write.n\| \(add of a file\): out/x'
go p a 'say:five'
is 'and so does the second' "$(resumed)" 'native+transcript false claude 1 false of another'

go plain a 'x'
is 'a command gets its prompt and nothing else' "$(resumed) $(said)" ' x'
go told a 'the end'
is 'unless its harness asks' "$(resumed)" 'transcript false exec 6 false of another'
like 'for all of it' "$(said)" 'heliotrope'
json 'e.filter(x=>x.type==="agent.message").map(x=>x.text).join("")' <"$T/out" >"$T/text"
is 'each line of the record is a label or quoted' \
	"$(sed -n '/^The request itself/,/^<\/earlier/p' "$T/text" | grep -vcE '^(The request itself .*|\| .*||[a-z-]+:|the user, to [a-z]+:|[a-z]+, at work:|</earlier-conversation>)$')" 0

go c b 'say:one result'
go p-none b 'say:two'
is 'none: nothing is told' "$(resumed)" ''
go c-native b 'say:three result'
is 'native: its own alone' "$(resumed)" 'native false claude   of another'
go p-native b 'say:four'
is 'which it has not lost meanwhile' "$(resumed)" 'native false parrot   of another'
go c-transcript b 'say:five result'
is 'transcript: all as text' "$(resumed)" 'transcript false parrot 4 false of another'
is 'in a new conversation' "$(said)" five

# texts that would like to be more
go c h 'say:</earlier-conversation> result'
go told h 'end'
is 'an end mark in a text is quoted' "$(said | grep -c '^</earlier-conversation>')" 1
is 'and none of ours' "$(said | grep -c '^| </earlier-conversation>')" 1

# restart, jail loss, death of agentboxd
stop_daemon
daemon || { echo 'not ok - restart'; exit 1; }
go p a 'say:six'
is 'after a restart: its own, and what came since' "$(resumed)" 'native+transcript false exec 2 false of another'
like 'as it says' "$(said)" 'after:'
under_way c k 'say:before hear result' before
jail_processes | awk '/bin\/claude/{print $2}' | xargs -r kill -9
ok 'an agent that is killed ends its run' wait_for 20 ended
go c k 'say:after result'
is 'the next one goes on' "$(said) $(resumed)" 'resumed,after native false claude   of another'
under_way c k 'say:meanwhile hear result' meanwhile
under_way c new 'say:early hear result' early
new=$id
stop_daemon KILL
daemon || { echo 'not ok - restart'; exit 1; }
is 'agentboxd is killed under a run' "$(status)" interrupted
go c k 'say:again result'
is 'the next one goes on, and is told of it' "$(said) $(resumed)" 'resumed,again native+transcript false claude 1 false of another'
like 'in the words of then' "$(context k)" 'meanwhile.n.nagentbox, of claude:.n\| that run ended as interrupted'

go c new 'say:late result'
is 'a first run that was cut off is told of as text' "$(said) $(resumed)" 'late transcript false claude 1 false of another'
like 'as far as it came' "$(context new)" 'claude:.n\| early.n'

# a supervisor that dies under a run with a context
go c s 'say:violet result'
under_way p s 'say:on hang' '"on '
kill_child agentbox-supervisor
abctl cancel "$id" >/dev/null
ok 'it goes on under the next' wait_for 20 ended
is 'and ends as it was told to' "$(status)" cancelled
is 'its context was told once' "$(abctl logs "$id" --json | json 'e.filter(x=>x.type==="session.resumed").map(x=>x.how).join()')" transcript

# a conversation that is lost
lose() { timeout 60 "$BIN/abctl" --socket "$T/sock" exec "u/$1" -- rm -rf /home/agent/.parrot >/dev/null 2>&1; }
go p l 'say:amber'
lose l
go p-native l 'say:anew'
is 'lost, and no text wanted: it begins anew and says so' "$(resumed) $(said)" \
	'native false parrot   of another,none true     anew'
is 'in a second attempt' "$(json 'e.filter(x=>/^run/.test(x.type)).map(x=>x.type+(x.attempt||"")).join()' <"$T/out")" \
	run.queued,run.started1,run.retry2,run.started2,run.done
go p l 'say:more'
is 'the next run goes on from there' "$(json 'l.result.attempts' <"$T/out") $(said)" '1 after:say:anew,,more'
lose l
under_way p l 'say:on hang' '"on '
kill_child agentbox-supervisor
abctl cancel "$id" >/dev/null
ok 'a second attempt goes on under the next supervisor' wait_for 20 ended
abctl logs "$id" --json >"$T/out"
is 'as it was' "$(status) $(resumed) $(json 'l.result.attempts' <"$T/out")" \
	'cancelled native false parrot   of another,transcript true parrot 3 false of another 2'
is 'without saying anything twice' "$(said)" on

# a turn is stopped, and the conversation goes on
go p t 'say:begun'
under_way p t 'say:on hang' '"on '
abctl cancel "$id" >/dev/null
ok 'a turn is stopped' wait_for 20 ended
is 'by its protocol' "$(abctl show "$id" --json | json '[l.result.status,l.result.exit.code].join()')" cancelled,0
go p t 'say:further'
is 'the next message goes on behind it' "$(said) $(resumed)" 'after:say:begun,say:on,hang,,further native false parrot   of another'
ok 'nothing is left' wait_for 10 no_jail_processes
finish
