#!/usr/bin/env bash
# Snapshots: made of a session or a directory, prepared in a jail; sessions start from them at once, store
# only what they change, and what they delete stays deleted, from run to run, over a restart, with
# and without a limit of disk, and in a snapshot of such a session.  One that is in use stays.
. tests/integration/lib.sh

mkdir -p "$T/etc/policy" "$T/etc/harnesses"
policy() { printf 'extends: default\n%s\n' "$2" >"$T/etc/policy/$1.yaml"; }
harness() { printf -- '---\nbackend: exec\npolicy: %s\ncommand: [sh, -c, %s]\n%s\n---\n' "$2" "$3" "${4:-}" >"$T/etc/harnesses/$1.md"; }
FROM='workspace: { snapshot: base }'
policy none 'limits: { memory: 4G }'
policy small 'limits: { disk: 64M, inodes: 2000 }'
harness make none "'mkdir -p d/sub keep; echo a >a; echo b >d/b; echo c >d/sub/c; echo k >keep/k; ln -s a link; ln a hard; printf \"#!/bin/sh\\\\necho ran\\\\n\" >tool; chmod 755 tool; head -c 20000000 /dev/urandom >big; setfattr -n user.mark -v here a 2>/dev/null; true'"
harness makesmall small "'mkdir -p d; echo limited >d/b; echo a >a'"
CHANGE="'ls | tr \"\\\\n\" \" \"; cat a d/b d/sub/c; ./tool; rm -rf d; mkdir d; echo new >d/n; rm link; echo changed >>a; chmod 700 keep; mv keep kept 2>/dev/null || true; mknod w c 0 0 2>/dev/null && echo MADE; setfattr -n trusted.overlay.opaque -v y d 2>/dev/null && echo MARKED; echo done'"
LOOK="'ls | tr \"\\\\n\" \" \"; ls d | tr \"\\\\n\" \" \"; cat a | tr \"\\\\n\" \" \"; ls kept'"
harness change none "$CHANGE" "$FROM"
harness look none "$LOOK" "$FROM"
harness changesmall small "$CHANGE" "$FROM"
harness looksmall small "$LOOK" "$FROM"
harness fill small "'cat a; dd if=/dev/zero of=mine bs=1M count=100 2>&1 | tail -n 1; cat big mine | wc -c'" "$FROM"
harness seeded none "'cat s a'" 'workspace: { snapshot: base, seed: { "s": "seed\n", "a": "seed\n" } }'
harness missing none "'true'" 'workspace: { snapshot: nowhere }'
harness wait none "'sleep 1000'" "$FROM"
harness grow none "'i=0; while [ \$i -lt 1200 ]; do echo \$i >f\$i; i=\$((i+1)); done'"
mkdir -p "$T/etc/templates/app/d" "$T/etc/templates/many"
echo template >"$T/etc/templates/app/a"
echo t >"$T/etc/templates/app/d/t"
ln -s /etc/passwd "$T/etc/templates/app/away"
chmod 600 "$T/etc/templates/app/a"
for i in $(seq 1200); do echo "$i" >"$T/etc/templates/many/f$i"; done
harness both none "'cat a s t; ls d | tr \"\\\\n\" \" \"; readlink away; stat -c %u a; echo mine >a; rm s'" 'workspace: { snapshot: base, template: app, seed: { "s": "seed\n", "t": "seed\n" } }'
harness bothsmall small "'cat a; ls d | tr \"\\\\n\" \" \"'" 'workspace: { snapshot: base, template: app }'
harness apart none "'cat a; ls | wc -l; echo mine >a'" 'workspace: { template: app }'
harness many none "'cat f1 f1200; ls | wc -l; echo mine >f1'" 'workspace: { template: many }'
harness notemplate none "'true'" 'workspace: { template: nowhere }'
: >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || exit 1

run() { abctl run "$1" -s "u/$2" -p x --json >"$T/out" 2>"$T/err"; }
result() { json "l.result.$1" <"$T/out"; }
text() { result 'finalText.split("\n").join(" ")'; }
session() { abctl sessions --json | json "l.sessions.find(x=>x.goalId==='$1').sessionId"; }
snapshots() { abctl snapshot ls --json | json 'l.snapshots.map(x=>x.name).join()'; }
dir_of() { readlink -f "$T/state/sessions/$(session "$1")"; }
layers() { find "$T/state/snapshots" -mindepth 1 -maxdepth 1 -type d | wc -l; }
layers_are() { [ "$(layers)" = "$1" ]; }
# The cp that makes a snapshot, a child of a job of the daemon's.
copying() {
	local job
	for job in $(pgrep -P "$DAEMON" agentbox-job); do pgrep -P "$job" -x cp; done
}
hold_copy() {
	local end=$((SECONDS + 20)) cp
	until cp=$(copying) && [ -n "$cp" ] && kill -STOP "$cp" 2>/dev/null; do
		[ "$SECONDS" -lt "$end" ] || break
	done
}
# Begins one of a session with many files and holds it.
begin_and_hold() {
	abctl snapshot create torn --from u/huge >/dev/null 2>&1 &
	CLIENT=$!
	hold_copy
}
trash_is_empty() { [ -z "$(ls -A "$T/state/trash")" ]; }

# ---- made of a session
run make origin
ok 'a snapshot of a session' abctl snapshot create base --from u/origin
is 'it is listed' "$(snapshots)" base
is 'with what it has' "$(abctl snapshot show base --json | json 'l.files===11&&l.bytes>20000000&&l.usedBy===0&&l.sessionId')" "$(session origin)"
ok 'its name is taken' not abctl snapshot create base --from u/origin
like 'and who wants it anyway is told how' "$(cat "$T/ok.out")" 'already.*--force'
ok 'with that it is taken' abctl snapshot create base --from u/origin --force
ok 'and the one before it goes' wait_for 10 layers_are 1
for name in ../x A .hidden a/b; do ok "no name: $name" not abctl snapshot create "$name" --from u/origin; done
ok 'of a session without files there is none' not abctl snapshot create empty --from u/nobody

# ---- started from
BEFORE=$(find "$T/state/snapshots" -path '*/tree/*' -not -name '.*' -printf '%P %s %m %T@\n' | sort | sha256sum)
SEEN='a big d hard keep link tool a b c ran done'
AFTER='a big d hard kept tool n a changed k'
run change one
is 'a session starts with what is in it, and no jail makes a whiteout' "$(text)" "$SEEN"
run look one
is 'what it did is there in its next run, and what it deleted is not' "$(text)" "$AFTER"
run change two
is 'another session starts anew' "$(text)" "$SEEN"
ok 'what a session stores is what it has changed' test "$(du -sk "$(dir_of one)" | cut -f1)" -lt 200
is 'the snapshot is as it was' "$(find "$T/state/snapshots" -path '*/tree/*' -not -name '.*' -printf '%P %s %m %T@\n' | sort | sha256sum)" "$BEFORE"
run seeded sown
is 'seeds come after it, and not over it' "$(text)" 'seed a'
run missing gone
like 'a snapshot that is not there is told' "$(result error)" "no snapshot 'nowhere'.*abctl snapshot create"
run change origin
# Outside an overlay Linux 6.1 lets anybody make a node 0:0, where it hides nothing.
is 'a session that has files stays what it is' "$(text | sed 's/ MADE / /')" "$SEEN"
is 'and stands on nothing' "$(abctl snapshot show base --json | json 'l.usedBy')" 3

# ---- with a template
run both both
is 'a template comes after the snapshot, and seeds after both' "$(text)" 'template seed seed b sub t /etc/passwd 1000'
run both both
is 'once: never over what an agent has changed' "$(result 'finalText.split("\n")[0]')" mine
run bothsmall bothsmall
is 'likewise with a limit of disk' "$(text)" 'template b sub t '
run apart apart
is 'and without a snapshot' "$(text)" 'template 3'
run apart apart
is 'once, too' "$(text)" 'mine 3'
run notemplate gone
like 'one that is not there is told' "$(result error)" 'workspace.template: .*templates/nowhere: No such file.*remedy'
for s in both bothsmall apart gone; do abctl session rm "u/$s" >/dev/null; done

# ---- in use
ok 'one that is in use stays' not abctl snapshot rm base
like 'and the sessions are named' "$(cat "$T/ok.out")" "in use by 3 sessions: .*$(session one)"
abctl run wait -s u/busy -p x --detach >/dev/null 2>&1
wait_for 10 abctl exec u/busy -- true
ok 'none of a session that is at work' not abctl snapshot create busy --from u/busy
abctl cancel "$(abctl runs --json | json 'l.runs.find(x=>x.harness==="wait").runId')" --now >/dev/null
wait_for 10 abctl session rm u/busy

# ---- of one that stands on one
ok 'a snapshot of such a session' abctl snapshot create second --from u/one
is 'has no layer below it' "$(abctl snapshot show second --json | json 'l.bytes>20000000')" true
sed 's/snapshot: base/snapshot: second/' "$T/etc/harnesses/look.md" >"$T/etc/harnesses/looksecond.md"
abctl reload >/dev/null
run looksecond three
is 'and shows what that has shown' "$(text)" "$AFTER"

# ---- with a limit
run changesmall small
is 'with a limit of disk it starts the same' "$(text)" "$SEEN"
run looksmall small
is 'and stays so' "$(text)" "$AFTER"
run fill fill
like 'what it stands on does not count, what it writes does' "$(text)" '^a .*(No space|quota|67|66|65).* (8[0-9]{7})$'
run makesmall plain
ok 'a snapshot of one with a limit' abctl snapshot create limited --from u/plain
ok 'is whole' test "$(cat "$T"/state/snapshots/"$(readlink "$T/state/snapshots/limited")"/tree/d/b)" = limited
ok 'and of one with a limit that stands on one' abctl snapshot create both --from u/small
is 'too' "$(ls "$T/state/snapshots/$(readlink "$T/state/snapshots/both")/tree/d")" n

# ---- made of a directory
mkdir -p "$T/dir/in"
echo here >"$T/dir/in/file"
ln -s /etc/shadow "$T/dir/link"
ok 'a snapshot of a directory' abctl snapshot create dir --from "$T/dir" --prepare 'echo prepared >p; cat in/file; (exec 3<>/dev/tcp/192.0.2.1/80) 2>/dev/null || echo alone'
like 'it was prepared in a jail' "$(cat "$T/ok.out")" here
is 'with what was there' "$(cd "$T/state/snapshots/$(readlink "$T/state/snapshots/dir")/tree" && cat p && readlink link)" 'prepared
/etc/shadow'
ok 'a session is prepared apart' abctl snapshot create prepared --from u/one --prepare 'test -e d/n && rm d/n && echo more >d/m'
is 'and has not changed' "$(ls "$(dir_of one)/workspace/upper/d")" n
is 'the snapshot has' "$(ls "$T/state/snapshots/$(readlink "$T/state/snapshots/prepared")/tree/d")" m
HAVE=$(snapshots)
abctl snapshot create bad --from "$T/dir" --prepare 'exit 3' >"$T/bad" 2>&1
is 'what cannot be prepared' $? 1
like 'is said' "$(tail -n 1 "$T/bad")" '^abctl: notice: .*exit code 3: no snapshot is made'
is 'lands nothing' "$(snapshots) $(abctl sessions --json | json 'l.sessions.filter(x=>x.userId==="snapshot").length')" "$HAVE 0"

# ---- killed
run grow huge
NAMED=$(layers)
begin_and_hold
ok 'one is being made' layers_are $((NAMED + 1))
stop_daemon KILL
wait $CLIENT
start_daemon --config "$T/etc/agentboxd.yaml"
is 'agentboxd killed in the middle of it: it is not there' "$(snapshots)" "$HAVE"
ok 'nor anything of it' wait_for 10 layers_are "$NAMED"
begin_and_hold
kill -KILL "$(child_pid agentbox-supervisor)"
wait $CLIENT
ok 'nor when the supervisor is' wait_for 10 layers_are "$NAMED"
wait_for 10 abctl version
is 'and the name is free' "$(snapshots)" "$HAVE"
abctl run many -s u/many -p x --detach >/dev/null 2>&1
hold_copy
stop_daemon KILL
start_daemon --config "$T/etc/agentboxd.yaml"
run many many
is 'a template that was cut short is copied whole' "$(text)" '1 1200 1200'
run many many
is 'and then no more' "$(text)" 'mine 1200 1200'
run look one
is 'what a session has deleted stays so' "$(text)" "$AFTER"
ok 'and the session can be taken again' abctl snapshot create whole --from u/huge
ok 'what is in use is known after a restart' not abctl snapshot rm base
for s in one two sown small fill; do abctl session rm "u/$s" >/dev/null; done
ok 'and what is not goes' abctl snapshot rm base
ok 'a name that is gone is gone' not abctl snapshot show base

# ---- replaced while it is in use
ok 'one in use may lose its name' abctl snapshot create second --from u/plain --force
run looksecond three
is 'who stands on it does so still' "$(text)" "$AFTER"
NAMED=$(layers)
abctl session rm u/three >/dev/null
ok 'and with the last of those it goes' wait_for 10 layers_are $((NAMED - 1))
ok 'what has gone is gone from the disk' wait_for 20 trash_is_empty
finish
