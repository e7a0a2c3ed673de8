"""A registry of npm's with good and hostile packages: registry.py SRV OUT HOST

SRV as internet.py serves it.  For each package NAME: OUT/NAME.yaml, an agent.yaml of an agent
`claude` that comes from it, with the digest of what is served (`wrong`: of something else).
"""
import base64
import gzip
import hashlib
import io
import json
import os
import sys
import tarfile

SRV, OUT, HOST = sys.argv[1:4]
PROGRAM = ("#!/bin/sh\nread -r line\n"
           "printf '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s1\",\"tools\":[]}\\n'\n"
           "case $line in *wait*) touch /workspace/up; while [ ! -e /workspace/go ]; do sleep 0.1; done ;; esac\n"
           "printf '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"%s %s\","
           "\"session_id\":\"s1\",\"num_turns\":1}\\n' \"$(cat /opt/agent/VERSION)\" \"$(cat /opt/agent/data/deep/text)\"\n")


def put(path, data):
    path = os.path.join(SRV, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())


def entry(name, data=b"", **how):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in how.items():
        setattr(info, key, value)
    return info, data


def tar(entries, kind=tarfile.USTAR_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=kind) as t:
        for info, data in entries:
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def program(version):
    return [entry("package/package.json", json.dumps({"name": "x", "scripts": {"install": "touch /tmp/ran"}}).encode()),
            entry("package/cli", PROGRAM.encode(), mode=0o4755, uid=1234),
            entry("package/LICENSE", b"do what you like\n", mode=0o666),
            entry("package/lib/deep/text", version.encode())]


def serve(name, version, data, wrong=False):
    digest = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
    package = "agent-" + name
    file = f"{package}/-/{package}-{version}.tgz"
    manifest = {"name": package, "version": version, "dist": {"tarball": f"https://{HOST}/{file}", "integrity": digest}}
    put(f"{HOST}/{file}", data)
    put(f"{HOST}/{package}/index.json",
        json.dumps({"name": package, "dist-tags": {"latest": version}, "versions": {version: manifest}}))
    if wrong:
        digest = "sha512-" + base64.b64encode(hashlib.sha512(data + b"x").digest()).decode()
    describe(name, version, package, digest)


def describe(name, version, package, digest, take=None):
    take = take or {"cli": "bin/claude", "lib": "data", "LICENSE": "LICENSE"}
    with open(os.path.join(OUT, name + ".yaml"), "w", encoding="utf-8") as f:
        f.write(f"name: claude\ndriver: claude\nprogram: /opt/agent/bin/claude\nversion: {version}\n"
                f"npm:\n  package: {package}\n  integrity: {digest}\n  take:\n"
                + "".join(f"    \"{a}\": {b}\n" for a, b in take.items()) + "installed_files: true\n")


def hostile():
    """What each archive has besides the program."""
    link = dict(type=tarfile.SYMTYPE, linkname="/etc")
    huge, _ = entry("package/lib/huge")
    huge.size = 5 << 30
    yield "traversal", tar(program("t") + [entry("package/lib/../../../evil", b"x")])
    yield "symlink", tar(program("t") + [entry("package/lib/out", **link), entry("package/lib/out/evil", b"x")])
    yield "twice", tar(program("t") + [entry("package/cli", b"other")])
    yield "huge", huge.tobuf(tarfile.USTAR_FORMAT) + bytes(1024)
    yield "endless", tar(program("t")) + os.urandom(2 << 20)
    yield "missing", tar(program("t")[:1])


serve("one", "1.0.0", gzip.compress(tar(program("one"))))
serve("two", "2.0.0", gzip.compress(tar(program("two") + [entry("package/lib/" + "long/" * 30 + "x", b"x")],
                                        tarfile.PAX_FORMAT)))
serve("wrong", "1.0.0", gzip.compress(tar(program("wrong"))), wrong=True)
serve("big", "1.0.0", gzip.compress(tar(program("big") + [entry("package/lib/big", os.urandom(8 << 20))])))
serve("nogzip", "1.0.0", tar(program("plain")))
for kind, archive in hostile():
    serve(kind, "1.0.0", gzip.compress(archive))
describe("nowhere", "1.0.0", "agent-nowhere", "sha512-" + "A" * 86 + "==")
