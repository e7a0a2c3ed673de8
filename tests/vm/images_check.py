"""images_check.py AFTER TOLD...: the files of sessions after a power cut (inside/images.py) against what clients were told.

TOLD are the outputs of all lives so far.  Prints one line for each thing that does not hold, then `# ` and figures;
exit 1 when something does not hold.
"""

import hashlib
import json
import sys

# a run removes the file of twelve runs before
KEPT = 10


def content(n):
    line = f"{n}\n".encode()
    return hashlib.sha256((line * (1000000 // len(line) + 1))[:1000000]).hexdigest()


def told(path):
    """user -> numbers of the files that were said to be on the disk"""
    kept = {}
    with open(path, errors="replace") as f:
        for line in f:
            word = line.split()
            if line.endswith("\n") and len(word) == 4 and word[0] == "K":
                kept.setdefault(word[1], []).append(int(word[2]))
    return kept


def check(after, lives):
    for kept in lives:
        for user, numbers in kept.items():
            now = after.get(user)
            if not now or now["status"] != "succeeded":
                yield f"{user}: its session does not work: {now}"
                continue
            for n in numbers[-KEPT:]:
                have = now["files"].get(f"f{n}")
                if have != content(n):
                    yield f"{user}: f{n} {'has other content' if have else 'is not there'}"


after = json.load(open(sys.argv[1]))
lives = [told(path) for path in sys.argv[2:]]
wrong = list(check(after, lives))
for line in wrong[:20]:
    print(line)
print(f"# files told of in this life: {', '.join(f'{u} {len(n)}' for u, n in sorted(lives[-1].items()))};",
      f"there now: {sum(len(s['files']) for s in after.values())}")
sys.exit(1 if wrong else 0)
