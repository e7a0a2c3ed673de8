#!/usr/bin/env bash
# Parts of a workspace that the harness takes from its agent: nothing it does changes them, nor what is on the way to them.
. tests/integration/lib.sh

mkdir -p "$T/etc/harnesses"
# harness NAME KEYS...: runs its prompt, python
harness() {
	local name=$1
	shift
	printf '%s\n' '---' 'backend: exec' 'command: [python3, -]' "$@" '---' >"$T/etc/harnesses/$name.md"
}
seed='workspace: { seed: { "conf.txt": "keep", "ref/data/one": "keep", "ref/other": "free", "deep/a/b/c": "keep", "free/x": "free" } }'
guard='narrow: { readOnly: [conf.txt, ref/data, deep/a/b] }'
harness guarded "$seed" "$guard"
harness checked "$seed" "$guard" 'verify: { command: [sh, -c, "echo bad >conf.txt; echo bad >deep/a/b/c; mv ref r; cat conf.txt deep/a/b/c"] }'
harness free "$seed"
harness missing "$seed" 'narrow: { readOnly: [ref/data/two] }'
harness above 'narrow: { readOnly: [../x] }'
: >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }

# agent HARNESS SESSION: runs the program on stdin, its events are in $T/out
agent() { timeout 120 "$BIN/abctl" --socket "$T/sock" run "$1" -s "u/$2" -p - --json >"$T/out" 2>"$T/err"; }
got() { json "$1" <"$T/out"; }
said() { got 'e.filter(x=>x.type==="agent.message").map(x=>x.text).join("").trim()'; }
kept() { (cd "$T/state/sessions/$1/workspace" && cat conf.txt ref/data/one deep/a/b/c && find conf.txt ref deep | LC_ALL=C sort | tr '\n' ' '); }
whole='keepkeepkeepconf.txt deep deep/a deep/a/b deep/a/b/c ref ref/data ref/data/one ref/other '

cat >"$T/attack.py" <<'PY'
import ctypes, mmap, os, shutil
libc = ctypes.CDLL(None, use_errno=True)
done = []
def attempt(name, f):
    try:
        f()
        done.append(name)
    except OSError:
        pass
def must(r):
    if r != 0:
        raise OSError(ctypes.get_errno(), "")
def write(path):
    with open(path, "a") as f:
        f.write("bad")
def shared(path):
    fd = os.open(path, os.O_RDONLY)
    mmap.mmap(fd, 4, mmap.MAP_SHARED, mmap.PROT_WRITE)[0:1] = b"X"
def reopened(path):
    fd = os.open(path, os.O_PATH)
    os.truncate(f"/proc/self/fd/{fd}", 0)
def exchange(a, b):
    must(libc.renameat2(-100, a.encode(), -100, b.encode(), 2))
for p in ("conf.txt", "ref/data/one", "deep/a/b/c"):
    for root in ("", "/workspace/", "/proc/self/root/workspace/", "/proc/self/cwd/", "/proc/1/root/workspace/"):
        attempt(f"write {root}{p}", lambda: write(root + p))
    attempt(f"truncate {p}", lambda: os.truncate(p, 0))
    attempt(f"unlink {p}", lambda: os.unlink(p))
    attempt(f"chmod {p}", lambda: os.chmod(p, 0o777))
    attempt(f"utime {p}", lambda: os.utime(p, (1, 1)))
    attempt(f"xattr {p}", lambda: os.setxattr(p, "user.x", b"1"))
    attempt(f"link {p}", lambda: os.link(p, "out-" + p.replace("/", "-")))
    attempt(f"over {p}", lambda: os.rename("free/x", p))
    attempt(f"away {p}", lambda: os.rename(p, "away"))
    attempt(f"exchange {p}", lambda: exchange(p, "free/x"))
    attempt(f"shared {p}", lambda: shared(p))
    attempt(f"reopened {p}", lambda: reopened(p))
for d in ("ref", "ref/data", "deep", "deep/a", "deep/a/b"):
    attempt(f"rename {d}", lambda: os.rename(d, d + "2"))
    attempt(f"exchange {d}", lambda: exchange(d, "free"))
    attempt(f"rmdir {d}", lambda: os.rmdir(d))
    attempt(f"unlink {d}", lambda: os.unlink(d))
    attempt(f"umount {d}", lambda: must(libc.umount2(d.encode(), 2)))
    attempt(f"bind {d}", lambda: must(libc.mount(b"free", d.encode(), None, 4096, None)))
    attempt(f"remount {d}", lambda: must(libc.mount(None, d.encode(), None, 32 | 4096, None)))
for d in ("ref/data", "deep/a/b"):
    attempt(f"new in {d}", lambda: write(d + "/new"))
    attempt(f"mkdir in {d}", lambda: os.mkdir(d + "/new"))
    attempt(f"into {d}", lambda: os.rename("free/x", d + "/x"))
attempt("a namespace", lambda: must(libc.unshare(0x20000 | 0x10000000)))
shutil.rmtree("ref", ignore_errors=True)
write("free/x")
write("new")
print("done:", ", ".join(done) or "nothing", os.path.exists("ref/other"))
PY

agent guarded a <"$T/attack.py"
is 'an agent can do nothing to them, and all else' "$(said)" 'done: nothing False'
session=$(got l.session)
is 'the run says what it was' "$(got 'JSON.stringify(e.find(x=>x.type==="run.started").narrow)')" '{"readOnly":["conf.txt","ref/data","deep/a/b"]}'
is 'they are what they were' "$(kept "$session")" "${whole% ref/other } "
like 'and the rest is the agent'"'"'s' "$(cat "$T/state/sessions/$session/workspace/free/x")" '^freebad$'
agent guarded a <"$T/attack.py"
is 'nor in the next run of the session' "$(said)" 'done: nothing False'
agent free a <<<'open("conf.txt", "a").write(" more"); open("ref/data/two", "w"); print("wrote")'
is 'another harness of the session may' "$(said)" wrote
agent guarded a <<<'print(open("conf.txt").read()); open("ref/data/two", "a")'
is 'and the next one keeps what that has made' "$(said)|$(got l.result.status)" 'keep more|failed'

agent checked b <<<'print("x")'
is 'a check, which does what the agent wrote, cannot either' "$(got 'l.result.verification.output.split("\n").filter(x=>!/[Rr]ead-only|busy/.test(x)).join()')" keepkeep

# ---- what is not there, or not what it seems ----

agent missing c <<<'print("x")'
is 'what is not there is told, and the agent not started' "$(got l.result.status) $(got l.result.error)$(said)" 'failed narrow.readOnly: ref/data/two: it is not in the workspace'
agent free d <<<'import os; os.rename("ref", "r"); os.symlink("r", "ref")'
agent guarded d <<<'print("x")'
is 'a link is not followed' "$(got l.result.error)$(said)" 'narrow.readOnly: ref: a link is in the way'
agent free e <<<'import os; os.link("conf.txt", "second")'
agent guarded e <<<'print("x")'
like 'a file with a second name is refused' "$(got l.result.error)$(said)" '^narrow.readOnly: conf.txt: the file has 2 names.*own$'
agent free f <<<'import os; os.remove("conf.txt"); os.mkfifo("conf.txt")'
agent guarded f <<<'print("x")'
is 'so is what is neither file nor directory' "$(got l.result.error)$(said)" 'narrow.readOnly: conf.txt: neither file nor directory'
like 'a path that leads out is no harness' "$(abctl run above -s u/g -p x 2>&1)" "readOnly.*relative path"
agent guarded g <<<'print("fine")'
is 'nothing of it stays for others' "$(said)" fine
like 'it is shown' "$(curl -sS --unix-socket "$T/sock" http://x/v1/harnesses/guarded)" '"readOnly":\["conf.txt"'

# ---- it holds over deaths, and for who joins ----

abctl run guarded -s u/h -p 'import os, time
print("begun", flush=True)
while not os.path.exists("free/go"): time.sleep(0.02)
try: open("conf.txt", "a"); print("wrote")
except OSError as e: print(e.errno)' --detach --json >"$T/begun"
id=$(json l.runId <"$T/begun") session=$(json l.sessionId <"$T/begun")
begun() { abctl logs "$id" --json | grep -q agent.message; }
wait_for 30 begun
kill_child agentbox-supervisor
ok 'a reload' abctl reload
like 'a command of a client in that jail cannot write them' "$(abctl exec u/h -- sh -c 'echo bad >conf.txt; mv deep d' 2>&1)" 'Read-only file system'
touch "$T/state/sessions/$session/workspace/free/go"
over() { abctl show "$id" --json | grep -q '"exit"'; }
wait_for 30 over
like 'nor its agent after the death of the supervisor' "$(abctl logs "$id" --json | json 'e.filter(x=>x.type==="agent.message").map(x=>x.text).join("")')" '30'
is 'all is there' "$(kept "$session")" "$whole"
finish
