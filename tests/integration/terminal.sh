# shellcheck shell=bash
# abctl on a terminal of its own: sourced after lib.sh.

# tty FILE ARGS... <<STEPS: abctl on a terminal of its own.  A step is a text to wait for, a tab, and
# what is typed then (\x03: Ctrl-C, \x04: Ctrl-D).  What it showed goes to FILE, with its exit code.
tty() {
	local to=$1
	shift
	TERM=dumb LC_ALL=C.UTF-8 timeout 120 python3 -c '
import os, pty, select, sys, time
steps = [[x.encode().decode("unicode_escape").encode() for x in line.split("\t")] for line in sys.stdin.read().splitlines()]
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
seen, at, end = b"", 0, time.time() + 100
while time.time() < end:
    while steps and seen.find(steps[0][0], at) >= 0:
        at = seen.find(steps[0][0], at) + len(steps[0][0])
        time.sleep(0.5) # a key that comes at once is not taken
        os.write(fd, steps.pop(0)[1])
    if select.select([fd], [], [], 0.1)[0]:
        try:
            more = os.read(fd, 65536)
        except OSError:
            break
        if not more:
            break
        seen += more
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(seen.decode(errors="replace").replace("\r", ""), "\nexit", code, "left", len(steps))
' "$BIN/abctl" --socket "$T/sock" "$@" >"$to"
}
