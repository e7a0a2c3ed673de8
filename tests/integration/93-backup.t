#!/usr/bin/env bash
# A backup while runs come and end, and what is brought back from it.
. tests/integration/lib.sh
. tests/integration/runs.sh

script waits 'echo on; while ! test -e go; do sleep 0.1; done' 'artifacts: [out/**]'
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
api() { curl -sS -m 20 --unix-socket "$@"; }
one() { # GOAL: a run that is over, its id
	api "$T/sock" -d '{"session":{"userId":"u","goalId":"'"$1"'"},"harness":"hello","prompt":"x"}' 'http://x/v1/runs?wait=1' |
		json 'l.runId'
}
refused() { # CODE TEXT ARGS...
	local code=$1 text=$2
	shift 2
	"$BIN/abctl" "$@" >"$T/out" 2>"$T/err"
	[ $? = "$code" ] && grep -qE -- "$text" "$T/err"
}
all_of() { # SOCKET RUN: its record without what changes, its events, its artifact
	api "$1" "http://x/v1/runs/$2" | json '[l.runId,l.status,l.createdAt,l.endedAt,l.result]'
	api "$1" "http://x/v1/runs/$2/events"
	api "$1" "http://x/v1/runs/$2/artifacts/out/hello.txt"
}

for i in 1 2 3 4 5 6; do one "g$((i % 3))" >>"$T/before"; done
begin waits w
waiting=$id
queued=$(abctl run waits -s u/w -p later --detach --json | json 'l.runId')
# load
(while ! test -e "$T/enough"; do one load >>"$T/during"; done) &
load=$!
ok 'load' wait_for 20 test -s "$T/during"
cp "$T/during" "$T/acknowledged"
ok 'a backup' abctl backup -o "$T/backup.tar"
cat "$T/before" >>"$T/acknowledged"
ok 'while runs go on' kill -0 "$load"
touch "$T/enough"
wait "$load"
is 'is for nobody but its owner' "$(stat -c %a "$T/backup.tar")" 600
tar -tf "$T/backup.tar" >"$T/names"
is 'and an archive like any other' $? 0
is 'with an end' "$(tail -n 1 "$T/names")" DIGEST
is 'nothing of it is left in the state' "$(find "$T/state/supervisor" -name 'backup*' | wc -l)" 0
is 'a member of the group gets none' "$(setpriv --reuid 12345 --regid "$(stat -c %g "$T/sock")" --clear-groups curl -sS -o /dev/null \
	-w '%{http_code}' -X POST --unix-socket "$T/sock" http://x/v1/backup)" 403
ok 'into a pipe, too' test "$(abctl backup -o - | tar -t | tail -n 1)" = DIGEST

# what is refused changes nothing
ok 'a state that is in use' refused 100 'an agentboxd uses it' restore "$T/backup.tar" --state "$T/state"
mkdir -m 700 "$T/foreign" && touch "$T/foreign/x"
ok 'a directory of something else' refused 100 'no state directory' restore "$T/backup.tar" --state "$T/foreign"
head -c $(($(stat -c %s "$T/backup.tar") - 2048)) "$T/backup.tar" >"$T/cut.tar"
ok 'a cut archive' refused 100 'cut.tar: .*(not whole|ends within|incomplete|end)' restore "$T/cut.tar" --state "$T/new"
cp "$T/backup.tar" "$T/bad.tar"
printf X | dd of="$T/bad.tar" bs=1 seek=5000 conv=notrunc 2>/dev/null
ok 'a damaged one' refused 100 'digest' restore "$T/bad.tar" --state "$T/new"
tar -C /etc -cf "$T/other.tar" hostname
ok 'another archive' refused 100 'no backup of agentbox' restore "$T/other.tar" --state "$T/new"
mkdir "$T/links" && cp "$T/names" "$T/links/agentbox-backup.json" && ln -s /etc/passwd "$T/links/db"
tar -C "$T/links" -cf "$T/links.tar" agentbox-backup.json db
ok 'one with a link' refused 100 'a link' restore "$T/links.tar" --state "$T/new"
is 'nothing of them is left' "$(ls -A "$T/new")" agentboxd.lock

# and back
ok 'restore' "$BIN/abctl" restore "$T/backup.tar" --state "$T/new"
ok 'not a second time' refused 100 'holds a state already' restore "$T/backup.tar" --state "$T/new"
"$BIN/agentboxd" --state "$T/new" --socket "$T/sock2" --config "$T/etc/agentboxd.yaml" 2>"$T/log2" &
second=$!
ok 'a daemon takes it up' wait_for 30 "$BIN/abctl" --socket "$T/sock2" version
same=0
while read -r run; do
	[ "$(all_of "$T/sock" "$run")" = "$(all_of "$T/sock2" "$run")" ] && same=$((same + 1))
done <"$T/acknowledged"
is 'every run that was acknowledged is there as it was' "$same" "$(wc -l <"$T/acknowledged")"
status2() { api "$T/sock2" "http://x/v1/runs/$1" | json 'l.status'; }
is 'one that ran was interrupted' "$(status2 "$waiting")" interrupted
begins() { [ "$(status2 "$queued")" = running ]; }
ok 'one that was queued begins' wait_for 20 begins
gapless=$(for s in $(api "$T/sock2" http://x/v1/sessions | json 'l.sessions.map(x=>x.sessionId).join(" ")'); do
	api "$T/sock2" "http://x/v1/sessions/$s/events" | json 'e.every((x,i)=>x.seq===i+1)'
done | sort -u)
is 'no number is missing' "$gapless" true
kill -9 "$second"
wait "$second" 2>/dev/null

# an older agentbox has written it: the first tables there were, as their own table of migrations has them
cat >"$T/older.py" <<'P'
import hashlib, io, re, sqlite3, sys, tarfile
path, out, version = sys.argv[1], sys.argv[2], int(sys.argv[3])
text = open("supervisor/store_sql.c").read()
text = re.sub(r"/\*.*?\*/", "", text[text.index("store_migrations[STORE_VERSIONS] = {"):], flags=re.S)
entries = ["".join(re.findall(r'"([^"]*)"', e)) for e in re.split(r'(?<="),\s*\n', text)]
db = sqlite3.connect(path)
for sql in entries[:version]:
    db.executescript(sql)
db.execute(f"PRAGMA user_version={version}")
run, ses = "run_01jd0000000000000000000000", "ses_01jd0000000000000000000000"
db.execute("INSERT INTO sessions(id, user, goal, created_ms, used_ms) VALUES(?, 'u', 'old', 1, 1)", (ses,))
db.execute("INSERT INTO runs(id, session, harness, status, prompt, result, priority, created_ms, ended_ms, from_seq)"
           " VALUES(?, ?, 'hello', 'succeeded', 'x', '{\"status\":\"succeeded\"}', 0, 1, 2, 1)", (run, ses))
db.commit()
db.close()
digest = hashlib.sha256()
tar = tarfile.open(out, "w", format=tarfile.USTAR_FORMAT)
def add(name, data):
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o600
    tar.addfile(info, io.BytesIO(data))
for name, data in (("agentbox-backup.json", b'{"format":1,"version":"0.0.1","at":"2026-01-01T00:00:00.000Z"}\n'),
                   ("db", open(path, "rb").read())):
    digest.update(name.encode() + b"\0" + data)
    add(name, data)
add("DIGEST", digest.hexdigest().encode())
tar.close()
P
ok 'a backup of an older version' python3 "$T/older.py" "$T/older.db" "$T/older.tar" 3
ok 'is restored' "$BIN/abctl" restore "$T/older.tar" --state "$T/older"
"$BIN/agentboxd" --state "$T/older" --socket "$T/sock2" --config "$T/etc/agentboxd.yaml" 2>"$T/log4" &
second=$!
ok 'and taken up' wait_for 30 "$BIN/abctl" --socket "$T/sock2" version
is 'with what it had' "$(api "$T/sock2" http://x/v1/runs/run_01jd0000000000000000000000 | json '[l.status,l.userId,l.goalId,l.result.status].join()')" succeeded,u,old,succeeded
ok 'and goes on' "$BIN/abctl" --socket "$T/sock2" run hello -s u/old -p x
kill -9 "$second"
wait "$second" 2>/dev/null

# a newer agentbox has written it
if command -v python3 >/dev/null; then
	python3 -c "import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); c.execute('PRAGMA user_version=999'); c.commit()" "$T/new/supervisor/db"
	timeout 20 "$BIN/agentboxd" --state "$T/new" --socket "$T/sock2" --config "$T/etc/agentboxd.yaml" 2>"$T/log3" &
	newer=$!
	told() { grep -q 'newer agentbox.*install that' "$T/log3"; }
	ok 'a state of a newer agentbox is refused with a remedy' wait_for 15 told
	kill "$newer"
	wait "$newer" 2>/dev/null
fi
finish
