#!/usr/bin/env bash
# The files of a session's workspace: read, written and removed by clients, whatever its agent does.
. tests/integration/lib.sh

mkdir -p "$T/harnesses"
cat >"$T/agentboxd.yaml" <<YAML
harness_dirs: [$T/harnesses]
YAML
cat >"$T/harnesses/quick.md" <<'MD'
---
name: quick
description: says what is there
backend: exec
command: [sh, -c, "cat given 2>/dev/null; echo made >made"]
---
MD
cat >"$T/harnesses/slow.md" <<'MD'
---
name: slow
description: goes on until it is told to end
backend: exec
command: [sh, -c, "echo up >up; until [ -e go ]; do sleep 0.1; done; cat go"]
---
MD
# Swaps a file, a directory and links for each other as fast as it can.
cat >"$T/harnesses/racer.md" <<'MD'
---
name: racer
description: swaps files for links
backend: exec
command: [sh, -c, "mkdir -p real; echo mine >real/f; ln -s real d; ln -s /etc e; echo up >up; while [ ! -e go ]; do mv -T real r2; mv -T d real; mv -T real d; mv -T r2 real; mv -T e real/x; mv -T real/x e; done"]
---
MD
# An agent whose conversation is a file in its home: it says what that has, and adds what it is asked.
cat >"$T/harnesses/talker.md" <<'MD'
---
name: talker
description: knows what was said, as long as it has its home
backend: claude
model: m
policy: demo
resume: native
---
MD
mkdir -p "$T/agents/claude/bin"
cat >"$T/agents/claude/bin/claude" <<'SH'
#!/bin/sh
read -r line
printf '{"type":"system","subtype":"init","session_id":"s1","cwd":"/workspace","tools":[]}\n'
case " $* " in *' --resume s1 '*) knows=$(cat ~/.claude/s1.jsonl) || exit 1 ;; esac
mkdir -p ~/.claude
printf %s "$line" | sed 's/.*"text":"\([^"]*\)".*/\1/' >>~/.claude/s1.jsonl
printf '{"type":"result","subtype":"success","is_error":false,"result":"knows %s","session_id":"s1","num_turns":1}\n' "$knows"
cat >/dev/null
SH
chmod 755 "$T/agents/claude/bin/claude"
start_daemon --config "$T/agentboxd.yaml" --agents "$T/agents" || { echo "not ok 1 - start"; echo 1..1; exit 1; }

api() { curl -s --unix-socket "$T/sock" "$@"; }
code() { api -o "$T/body" -w '%{http_code}' "$@"; }
status() { abctl show "$1" --json | json 'l.status'; }
has_status() { [ "$(status "$1")" = "$2" ]; }
detach() { abctl run "$@" --detach --json | json 'l.runId'; }

S=$(api -d '{"userId":"u","goalId":"g"}' http://x/v1/sessions | json 'l.sessionId')
F=http://x/v1/sessions/$S/files
W=$T/state/sessions/$S/workspace

# ---- a session that no run was in ----
is 'an empty workspace is an empty list' "$(api "$F" | json 'l.entries.length')" 0
is 'a file is put' "$(printf 'one\n' | code -T - -H 'Content-Length: 4' -H 'Transfer-Encoding:' "$F/a/b/one.txt")" 204
is 'as it was' "$(cat "$W/a/b/one.txt")" one
is 'it can be read' "$(api "$F/a/b/one.txt")" one
is 'and replaced' "$(code -X PUT --data-binary 'two and more' "$F/a/b/one.txt?mode=0755")" 204
is 'its mode with it' "$(api -D - -o /dev/null "$F/a/b/one.txt" | tr -d '\r' | awk 'tolower($1)=="agentbox-mode:"{print $2}')" 0755
is 'keep=1 replaces nothing' "$(code -X PUT --data-binary x "$F/a/b/one.txt?keep=1")" 409
is 'an empty file' "$(code -X PUT "$F/empty")" 204
is 'which has no bytes' "$(stat -c %s "$W/empty")" 0
is 'a range' "$(api -r 4-6 "$F/a/b/one.txt")" and
is 'is said to be one' "$(code -r 4-6 "$F/a/b/one.txt")" 206
is 'the end of it' "$(api -r -4 "$F/a/b/one.txt")" more
is 'one from where it has nothing' "$(code -r 12- "$F/a/b/one.txt")" 416
is 'HEAD says how long it is' "$(api -I "$F/a/b/one.txt" | tr -d '\r' | awk 'tolower($1)=="content-length:"{print $2}')" 12
is 'a directory is a list' "$(api "$F/a" | json 'l.entries.map(x=>x.name+":"+x.type).join()')" b:directory
is 'of types and sizes' "$(api "$F/a/b" | json 'l.entries.map(x=>[x.name,x.type,x.bytes,x.mode].join()).join()')" one.txt,file,12,0755
is 'a directory is no place for bytes' "$(code -X PUT --data-binary x "$F/a")" 409
is 'nor goes while it holds something' "$(code -X DELETE "$F/a")" 409
is 'unless all of it is meant' "$(code -X DELETE "$F/a?recursive=1")" 204
ok 'then it is gone' not test -e "$W/a"
is 'what is not there is not found' "$(code "$F/a") $(code -X DELETE "$F/a")" '404 404'
is 'nor a session that is not there' "$(code http://x/v1/sessions/ses_0/files)" 404
is 'a body without a length is refused' "$(printf x | code -T - "$F/x")" 400
ok 'and leaves nothing' not test -e "$W/x"
is 'a path that leads out' "$(code --path-as-is "$F/..%2f..%2fetc/passwd") $(code --path-as-is -X PUT --data-binary x "$F/..%2fx")" '403 403'
ok 'an upload that is cut leaves nothing' not sh -c "printf x | timeout 1 curl -s --unix-socket '$T/sock' -T - -H 'Content-Length: 100' -H 'Transfer-Encoding:' '$F/cut'"
no_parts() { [ -z "$(find "$W" -name '.agentbox*' -o -name cut)" ]; }
ok 'not even its beginning' wait_for 20 no_parts

# ---- pages ----
abctl exec "$S" -- sh -c 'mkdir many; cd many; for i in $(seq 1000 1249); do : >f$i; done; : >"$(printf "bad\377")"' >/dev/null 2>&1
is 'a page ends where it is to' "$(api "$F/many?limit=100" | json 'l.entries.length+" "+l.cursor+" "+l.unnamed')" '100 f1099 1'
is 'and the next one goes on' "$(api "$F/many?limit=200&cursor=f1099" | json 'l.entries.length+" "+l.entries[0].name+" "+l.cursor')" '150 f1100 undefined'

# ---- while a run goes on, and before one ----
printf 'given by a client\n' | abctl session cp - "$S:given"
is 'a run sees what was put' "$(abctl run quick -s u/g -p x --json 2>/dev/null | json 'e.find(x=>x.type=="run.done").result.finalText.trim()')" 'given by a client'
run=$(detach slow -s u/g -p x)
ok 'a run is up' wait_for 30 test -e "$W/up"
is 'its files can be read meanwhile' "$(abctl session cp "$S:up" -)" up
is 'and written' "$(code -X PUT --data-binary 'as said' "$F/go")" 204
ok 'which it sees' wait_for 30 has_status "$run" succeeded
is 'as it came' "$(abctl show "$run" --json | json 'l.result.finalText.trim()')" 'as said'
printf 'x%.0s' $(seq 100) >"$T/x"
puts=()
for i in $(seq 12); do
	code -T "$T/x" "$F/par/$i" >"$T/par.$i" &
	puts+=($!)
done
wait "${puts[@]}"
is 'many at once all come through' "$(cat "$T"/par.* | tr -d '\n' | sed 's/204//g')$(find "$W/par" -type f -size 100c | wc -l)" 12

# ---- abctl ----
mkdir -p "$T/tree/sub/deep" "$T/tree/void"
head -c 3000000 /dev/urandom >"$T/tree/sub/big"
printf '#!/bin/sh\n' >"$T/tree/sub/deep/run.sh"
chmod 755 "$T/tree/sub/deep/run.sh"
ln -s /etc/passwd "$T/tree/link"
ok 'a directory is copied in' abctl session cp "$T/tree" u/g:tree
ok 'and out again' abctl session cp u/g:tree "$T/back"
rm "$T/tree/link"
ok 'the same' diff -r "$T/tree" "$T/back"
ok 'with what may be executed' test -x "$T/back/sub/deep/run.sh"
like 'links were left out' "$(abctl session ls u/g tree)" void
ok 'not copied' not test -e "$W/tree/link"
ok 'a file goes into a directory under its name' abctl session cp "$T/x" "u/g:tree/"
is 'there' "$(abctl session cp u/g:tree/x - | wc -c)" 100
ok 'directories go with -r' abctl session rm -r u/g tree
ok 'and are gone' not test -e "$W/tree"

# ---- as an archive ----
long=$(printf 'd%.0s' $(seq 120))
mkdir -p "$T/tree/$long"
echo deep >"$T/tree/$long/f"
abctl session cp "$T/tree" u/g:tree
abctl session rm -r u/g many >/dev/null
ok 'a session is exported' abctl session export u/g -o "$T/s.tar"
like 'with what was' "$(tar -tf "$T/s.tar")" '^events.jsonl$'
is 'of it' "$(tar -xOf "$T/s.tar" session.json | json 'l.sessionId') $(tar -xOf "$T/s.tar" events.jsonl | json 'String(e.some(x=>x.type=="run.done"))') $(tar -xOf "$T/s.tar" runs.jsonl | wc -l)" "$S true 2"
ok 'and imported' sh -c "'$BIN/abctl' --socket '$T/sock' session import v/new <'$T/s.tar'"
ok 'the same files come out' abctl session cp v/new:tree "$T/again"
ok 'all of them' diff -r -x void "$T/tree" "$T/again"
ok 'with what may be executed' test -x "$T/again/sub/deep/run.sh"
like 'not into one that is there' "$(abctl session import v/new -f "$T/s.tar" 2>&1)" 'already'
refused() { # WHAT: no session is left
	ok "an archive with $1 is refused" not abctl session import v/bad -f "$T/bad.tar"
	is 'and leaves no session' "$(api 'http://x/v1/sessions?user=v&goal=bad' | json 'l.sessions.length')" 0
}
mkdir -p "$T/in/workspace"
echo x >"$T/in/workspace/ok"
ln -s /etc/passwd "$T/in/workspace/zlink"
tar -C "$T/in" -cf "$T/bad.tar" workspace/ok workspace/zlink && refused 'a link'
tar -C "$T/in" -cf "$T/bad.tar" --transform 's,ok,../../up,' workspace/ok 2>/dev/null && refused 'a name that leads out'
head -c 1000000 "$T/s.tar" >"$T/bad.tar" && refused 'no end'
tar -C "$T/in/workspace" -cf "$T/bad.tar" ok && refused 'nothing of a session'
like 'which is said' "$(abctl session import v/bad -f "$T/bad.tar" 2>&1)" 'bad.tar has neither workspace/ nor session.json'
for top in '' . ./ /; do abctl session rm -r u/g "$top"; done >"$T/top" 2>&1
is 'the workspace itself is not removed' "$(grep -c 'is the workspace itself: name what is in it' "$T/top")" 4
ok 'directories go with -r' abctl session rm -r u/g tree
new=$(api 'http://x/v1/sessions?user=v&goal=new' | json 'l.sessions[0].sessionId')
arrives() { [ "$(api "http://x/v1/sessions/$new" | json 'l.active')" = true ]; }
ok 'nothing is there for it' wait_for 20 not arrives
head -c 400000 /dev/zero >"$T/late"
(curl -s --limit-rate 300k --unix-socket "$T/sock" -T "$T/late" "http://x/v1/sessions/$new/files/late" >/dev/null 2>&1 &)
ok 'something is put there' wait_for 20 arrives
ok 'a session goes when that is done' abctl session rm v/new
joined=$(api -d '{"userId":"v","goalId":"joined"}' http://x/v1/sessions | json l.sessionId)
curl -s --limit-rate 10k --unix-socket "$T/sock" -T "$T/late" "http://x/v1/sessions/$joined/files/late" >/dev/null 2>&1 &
putter=$!
ok 'something is put into another' wait_for 20 sh -c "$BIN/abctl --socket $T/sock session show $joined --json | grep -q '\"active\":true'"
abctl exec "$joined" -- sh -c 'touch joined; sleep 60' >/dev/null 2>&1 &
ok 'a command joins' wait_for 20 sh -c "$BIN/abctl --socket $T/sock session ls $joined | grep -q joined"
kill "$putter"
wait "$putter" 2>/dev/null
begun=$SECONDS
like 'which stays: that the session is in use is said' "$(abctl session rm "$joined" 2>&1)" 'is in use: end its runs, commands and requests for files first'
ok 'at once' test $((SECONDS - begun)) -lt 5

# ---- with the home ----
talk() { abctl run talker -s "$1" -p "$2" --json 2>/dev/null >"$T/talk"; json '(e.find(x=>x.type==="session.resumed")||{how:"begins"}).how+": "+e.find(x=>x.type==="run.done").result.finalText.trim()' <"$T/talk"; }
is 'an agent begins a conversation' "$(talk u/talk heliotrope)" 'begins: knows'
talked=$(json 'l.run' <"$T/talk")
abctl session export u/talk -o "$T/bare.tar"
is 'which is not exported' "$(tar -tf "$T/bare.tar" | grep -cE '^(home|conv)')" 0
ok 'unless that is meant' abctl session export u/talk --home -o "$T/home.tar"
is 'with its file' "$(tar -xOf "$T/home.tar" home/.claude/s1.jsonl)" heliotrope
is 'and its id' "$(tar -xOf "$T/home.tar" conversations.json | json 'JSON.stringify(l.conversations)')" "[{\"backend\":\"claude\",\"id\":\"s1\",\"runId\":\"$talked\"}]"
ok 'both are imported' abctl session import v/talk --home -f "$T/home.tar" # its run comes after a SIGKILL
like 'nor that unless it is meant' "$(abctl session import v/begins -f "$T/home.tar" 2>&1)" 'of the home.* left out'
is 'then the conversation is another' "$(talk v/begins violet)" 'begins: knows'
talks() { code -X PUT -d "{\"conversations\":[$2]}" "http://x/v1/sessions/$1/conversations"; }
begins=$(api 'http://x/v1/sessions?user=v&goal=begins' | json 'l.sessions[0].sessionId')
is 'a session with runs takes none' "$(talks "$begins" '{"backend":"claude","id":"s2"}')" 409
is 'nor does one that is not there' "$(talks ses_0 '') $(code http://x/v1/sessions/ses_0/conversations) $(code http://x/v1/sessions/ses_0/home)" '404 404 404'
fresh=$(api -d '{"userId":"v","goalId":"fresh"}' http://x/v1/sessions | json 'l.sessionId')
for bad in '{"backend":"claude","id":"--x"}' '{"backend":"claude","id":""}' '{"backend":"claude","id":"a b"}' '{"backend":"../x","id":"a"}' \
	'{"backend":"claude"}' '{"backend":"claude","id":"a","runId":"b"}' '7' '{"backend":"a","id":"a"},{"backend":"a","id":"b"}' \
	"$(seq -f '{"backend":"a%g","id":"a"}' -s, 33)" "{\"backend\":\"claude\",\"id\":\"$(printf 'x%.0s' $(seq 257))\"}"; do
	is "no conversation: ${bad:0:40}" "$(talks "$fresh" "$bad")" 400
done
is 'none of them is there' "$(api "http://x/v1/sessions/$fresh/conversations")" '{"conversations":[]}'
H=http://x/v1/sessions/$fresh/home
is 'a path that leads out of the home' "$(code --path-as-is "$H/..%2f..%2fetc/passwd") $(code --path-as-is -X PUT --data-binary x "$H/..%2fx")" '403 403'
is 'a file of it is put and read' "$(code -X PUT --data-binary x "$H/a/b") $(api "$H/a/b") $(api "$H/a" | json 'l.entries[0].name')" '204 x b'
is 'and is none of the workspace' "$(code "http://x/v1/sessions/$fresh/files/a/b")" 404
with_home() { # WHAT CONVERSATIONS: likewise of an archive that is imported with the home
	printf %s "$2" >"$T/in/conversations.json"
	tar -C "$T/in" -cf "$T/bad.tar" conversations.json workspace/ok home
	ok "an archive with $1 is refused" not abctl session import v/bad --home -f "$T/bad.tar"
	is 'and leaves no session' "$(api 'http://x/v1/sessions?user=v&goal=bad' | json 'l.sessions.length')" 0
}
mkdir -p "$T/in/home"
with_home 'an id that is an option' '{"conversations":[{"backend":"claude","id":"--x"}]}'
with_home 'conversations that are no JSON' '{"conversations":[{'
with_home 'too much of them' "$(printf 'x%.0s' $(seq 40000))"
ln -s /etc/passwd "$T/in/home/link"
with_home 'a link in the home' '{"conversations":[]}'

abctl exec "$S" -- sh -c 'mkdir odd; cd odd; echo 1 >aa; echo 2 >"$(printf "b\nb")"; echo 3 >"$(printf "c\377")"; echo 4 >d; mkdir e; echo 5 >e/f
	chmod 0 d e; p=$(printf "%0200d" 0); for i in 1 2 3 4 5 6; do mkdir $p; cd $p; done; echo 6 >f; cd; echo 7 >/workspace/odd/zz' >/dev/null 2>&1
abctl session export u/g -o "$T/odd.tar" 2>"$T/err"
is 'an export that lacks files says so' "$?" 1
like 'which' "$(cat "$T/err")" "odd/e|'odd/d'"
like 'and what has no name that could be told' "$(cat "$T/err")" 'odd: names of 1 are no text'
is 'and has the others' "$(tar -tf "$T/odd.tar" | grep odd/ | tr '\n' ' ')" 'workspace/odd/aa workspace/odd/zz '
ok 'it is imported' abctl session import v/odd -f "$T/odd.tar"
is 'so it is with a copy' "$(abctl session cp u/g:odd "$T/odd" 2>/dev/null; echo "$?$(cat "$T/odd/zz")")" 17
abctl exec "$S" -- sh -c 'cd odd && chmod 700 d e && cd .. && rm -rf odd' >/dev/null 2>&1

# ---- what an agent may have put there ----
echo secret >"$T/secret"
chmod 644 "$T/secret"
abctl exec "$S" -- sh -c "ln -s /etc/passwd l; ln -s /etc d; mkfifo p; mkdir -p deep/er; ln -s .. deep/er/up; echo kept >kept; ln kept hard; chmod 000 kept" >/dev/null 2>&1
is 'a link is not read' "$(code "$F/l") $(code "$F/d/passwd")" '403 403'
like 'nor written through' "$(code -X PUT --data-binary x "$F/d/passwd")" '^40[34]$'
is 'but replaced' "$(code -X PUT --data-binary mine "$F/l")" 204
is 'itself' "$(stat -c %F "$W/l")" 'regular file'
is 'a FIFO is no file to wait for' "$(code "$F/p")" 400
is 'links are named as such' "$(api "$F/deep/er" | json 'l.entries[0].type')" link
is 'a tree goes without what its links name' "$(code -X DELETE "$F/deep?recursive=1") $(test -e "$W/given" && echo there)" '204 there'
is 'what the agent cannot read stays its own' "$(code "$F/kept")" 403
run=$(detach racer -s u/g -p x)
ok 'an agent swaps files for links' wait_for 30 test -e "$W/real/f"
for i in $(seq 30); do
	for f in real/f d/f e/passwd; do api "$F/$f"; done >>"$T/raced"
	api -o /dev/null -X PUT --data-binary raced "$F/e/raced"
	api -o /dev/null -X DELETE "$F/real/x?recursive=1"
done
ok 'and nothing of the jail or the host comes out' not grep -q root: "$T/raced"
ok 'nor gets in' not test -e /etc/raced
code -X PUT --data-binary x "$F/go" >/dev/null
abctl cancel "$run" >/dev/null 2>&1
ok 'the host has its /etc' test -e /etc/passwd

# ---- death ----
head -c 50000000 /dev/zero >"$T/zeros"
(curl -s --limit-rate 5M --unix-socket "$T/sock" -T "$T/zeros" "$F/zeros" >/dev/null 2>&1 &)
begun() { [ -n "$(find "$W" -name '.agentbox-write-*' -size +100k)" ]; }
ok 'an upload is under way' wait_for 20 begun
kill_child agentbox-supervisor
ok 'one that a SIGKILL of the supervisor ends makes no file' not test -e "$W/zeros"
is 'an agent whose home was imported goes on with its conversation' "$(talk v/talk again)" 'native: knows heliotrope'
is 'files are served by the next one' "$(code "$F/given")" 200
is 'and put there' "$(code -X PUT --data-binary x "$F/next")" 204
ok 'what was begun is gone then' wait_for 20 no_parts
ok 'a session is deleted as ever' wait_for 20 abctl session rm u/g # its last file's jail has gone
ok 'no jail is left' wait_for 20 no_jail_processes
finish
