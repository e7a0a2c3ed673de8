#!/usr/bin/env python3
"""needles.py - where in a jail a text is, as root of the host sees it.

	needles.py [--wire DIRECTORY] NEEDLE... -- PID...

PIDs are all processes of one jail. Prints a line "NEEDLE<TAB>PLACE<TAB>WHERE" for each find:

	environ, argv	of each process
	memory		each page that a process has, whatever its protection
	descriptor	each file that a process holds open, also one without a name
	file		each file that the jail has beside the host's programs (/usr, /opt/agent)
	proc		each file below the jail's /proc
	wire		what wire.py recorded

The last line says how much was looked at. Exit 0, or 2 when the jail was gone or could not be
looked at: then nothing is proven.
"""
import os
import re
import stat
import sys

PAGE = os.sysconf("SC_PAGE_SIZE")
PIECE = 1 << 24
PRESENT_OR_SWAPPED = 3 << 62
PROC_SKIPPED = {"kmsg", "kcore", "pagemap", "mem", "clear_refs", "kpagecount", "kpageflags", "kpagecgroup"}
PROC_MAX = 1 << 20

needles = []
overlap = 0
looked = {}


def look(place, where, data):
    looked[place] = looked.get(place, 0) + len(data)
    for n in needles:
        if n in data:
            print(f"{n.decode()}\t{place}\t{where}")


def look_file(place, where, fd):
    """All of what the descriptor reads, piece by piece."""
    tail = b""
    while True:
        data = os.read(fd, PIECE)
        if not data:
            return
        look(place, where, tail + data)
        tail = data[-overlap:]


def slurp(path):
    with open(path, "rb") as f:
        return f.read()


def open_and_look(place, where, path, flags=0):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            look_file(place, where, fd)
    finally:
        os.close(fd)


# ---- memory ----

def mappings(pid):
    """(start, end, name) of mappings that have pages."""
    at = None
    for line in slurp(f"/proc/{pid}/smaps").decode(errors="replace").split("\n"):
        m = re.match(r"([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ \d+ *(.*)", line)
        if m:
            at = (int(m[1], 16), int(m[2], 16), m[3])
        m = re.match(r"(Rss|Swap): +(\d+) kB", line)
        if m and int(m[2]) and at and not at[2].startswith("[v"):
            yield at
            at = None


def runs_of_pages(pagemap, start, end):
    """Neighbouring pages that there are, as (address, length)."""
    first = None
    step = 1 << 29
    for base in range(start, end, step):
        count = (min(base + step, end) - base) // PAGE
        entries = os.pread(pagemap, count * 8, base // PAGE * 8)
        if entries.count(0) == len(entries):
            if first is not None:
                yield first, base - first
                first = None
            continue
        for i, e in enumerate(memoryview(entries).cast("Q")):
            here = base + i * PAGE
            if e & PRESENT_OR_SWAPPED:
                first = here if first is None else first
            elif first is not None:
                yield first, here - first
                first = None
    if first is not None:
        yield first, end - first


def memory(pid):
    mem = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    pagemap = os.open(f"/proc/{pid}/pagemap", os.O_RDONLY | os.O_CLOEXEC)
    try:
        for start, end, name in list(mappings(pid)):
            for at, length in runs_of_pages(pagemap, start, end):
                tail = b""
                while length:
                    try:
                        data = os.pread(mem, min(length, PIECE), at)
                    except OSError:
                        break  # unmapped meanwhile
                    if not data:
                        break
                    look("memory", f"{pid} {name}", tail + data)
                    tail = data[-overlap:]
                    at += len(data)
                    length -= len(data)
    finally:
        os.close(mem)
        os.close(pagemap)


# ---- files ----

def walk(place, root, skipped, only=None):
    for folder, folders, files in os.walk(root, followlinks=False):
        inside = folder[len(root):] or "/"
        folders[:] = [d for d in folders if os.path.join(inside, d) not in skipped]
        for name in files:
            if only and not only(name):
                continue
            path = os.path.join(folder, name)
            try:
                if not stat.S_ISREG(os.lstat(path).st_mode):
                    continue
                if place == "proc":
                    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
                    try:
                        look(place, os.path.join(inside, name), os.read(fd, PROC_MAX))
                    finally:
                        os.close(fd)
                else:
                    open_and_look(place, os.path.join(inside, name), path, os.O_NOFOLLOW)
            except OSError:
                continue  # gone meanwhile, masked, or a file of /proc that is not for reading


def process(pid):
    look("environ", pid, slurp(f"/proc/{pid}/environ"))
    look("argv", pid, slurp(f"/proc/{pid}/cmdline"))
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{fd}"
        try:
            if stat.S_ISREG(os.stat(path).st_mode):
                open_and_look("descriptor", f"{pid} {os.readlink(path)}", path)
        except OSError:
            continue  # closed meanwhile
    memory(pid)


def wire(folder):
    for name in sorted(os.listdir(folder)):
        data = slurp(os.path.join(folder, name))
        look("wire", name, data)
        # A body in chunks, taken together.
        look("wire", name + " (chunks joined)", re.sub(rb"\r\n[0-9a-fA-F]+\r\n", b"", data))


def main(argv):
    global needles, overlap
    folder = None
    if argv[:1] == ["--wire"]:
        folder, argv = argv[1], argv[2:]
    at = argv.index("--")
    needles = [n.encode() for n in argv[:at]]
    pids = argv[at + 1:]
    overlap = max(map(len, needles)) - 1
    if not pids or not min(map(len, needles)):
        return 2
    gone = 0
    for pid in pids:
        try:
            process(pid)
        except FileNotFoundError:
            gone += 1  # a short-lived one
        except ProcessLookupError:
            gone += 1
    root = f"/proc/{pids[-1]}/root"
    if gone == len(pids) or not os.path.isdir(root + "/proc"):
        return 2
    walk("file", root, {"/usr", "/opt/agent", "/proc", "/sys"})
    walk("proc", root + "/proc", set(), lambda name: name not in PROC_SKIPPED)
    if folder:
        wire(folder)
    print(f"# {len(pids) - gone} processes; bytes: " + ", ".join(f"{k} {v}" for k, v in looked.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
