"""Packs, good and hostile, as archives: pack_archives.py OUT SRV HOST

OUT/NAME.tgz each; `good` also as npm package agent-pack of HOST, which SRV serves (internet.py).
"""
import base64
import gzip
import hashlib
import io
import json
import os
import sys
import tarfile

OUT, SRV, HOST = sys.argv[1:4]
HARNESS = b"---\nbackend: exec\nsecrets: []\ncommand: [sh, -c, 'echo of an archive']\n---\n"


def entry(name, data=b"", **how):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in how.items():
        setattr(info, key, value)
    return info, data


def archive(name, entries, form=tarfile.USTAR_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as t:
        for info, data in entries:
            t.addfile(info, io.BytesIO(data))
    data = gzip.compress(out.getvalue())
    with open(os.path.join(OUT, name + ".tgz"), "wb") as f:
        f.write(data)
    return data


def put(path, data):
    path = os.path.join(SRV, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


GOOD = [entry("package/harnesses/say.md", HARNESS), entry("package/package.json", b'{"version":"3.1.4"}')]
data = archive("good", GOOD)
digest = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
put(f"{HOST}/agent-pack/-/agent-pack-3.1.4.tgz", data)
put(f"{HOST}/agent-pack/index.json", json.dumps({
    "name": "agent-pack", "dist-tags": {"latest": "3.1.4"}, "versions": {"3.1.4": {
        "name": "agent-pack", "version": "3.1.4",
        "dist": {"tarball": f"https://{HOST}/agent-pack/-/agent-pack-3.1.4.tgz", "integrity": digest}}}}).encode())
put("packs.example/good.tgz", data)
archive("flat", [entry("harnesses/say.md", HARNESS), entry("README.md", b"x")])
archive("long", GOOD + [entry("package/" + "n" * 200, b"x")], tarfile.PAX_FORMAT)
archive("symlink", GOOD + [entry("package/harnesses/out.md", type=tarfile.SYMTYPE, linkname="/etc/shadow")])
archive("dots", GOOD + [entry("package/../../../../tmp/agentbox-evil", b"x")])
archive("twice", GOOD + [entry("package/harnesses/say.md", HARNESS)])
archive("case", GOOD + [entry("package/harnesses/SAY.md", HARNESS)])
archive("gnu", GOOD + [entry("package/" + "n" * 200, b"x")], tarfile.GNU_FORMAT)
archive("deep", GOOD + [entry("package/" + "d/" * 70 + "x", b"x")], tarfile.PAX_FORMAT)
archive("huge", GOOD + [entry("package/huge", bytes(17 << 20))])
archive("nul", GOOD + [entry("package/n", b"x", pax_headers={"path": "package/a\0b"})], tarfile.PAX_FORMAT)
archive("record", GOOD + [entry("package/INSTALLED", b'{"harnesses":"harnesses","grants":["secrets:*"]}')])
