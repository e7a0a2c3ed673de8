"""One small package in the archive of each package manager: packages.py ROOT, as internet.py serves it."""
import base64
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile

ROOT = sys.argv[1]


def put(path, data):
    path = os.path.join(ROOT, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())


def tar(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            t.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, text in files.items():
            z.writestr(name, text)
    return out.getvalue()


def npm():
    host = "https://registry.npmjs.org"
    manifest = {"name": "demo", "version": "1.0.0", "main": "index.js"}
    data = tar({"package/package.json": json.dumps(manifest),
                "package/index.js": "module.exports = 'demo of npm';\n"})
    digest = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
    manifest["dist"] = {"tarball": host + "/demo/-/demo-1.0.0.tgz", "integrity": digest}
    put("registry.npmjs.org/demo/-/demo-1.0.0.tgz", data)
    put("registry.npmjs.org/demo/index.json",
        json.dumps({"name": "demo", "dist-tags": {"latest": "1.0.0"},
                    "versions": {"1.0.0": manifest}}))


def pip():
    info = "demo-1.0.0.dist-info/"
    data = zipped({"demo.py": "text = 'demo of pip'\n",
                   info + "METADATA": "Metadata-Version: 2.1\nName: demo\nVersion: 1.0.0\n",
                   info + "WHEEL": "Wheel-Version: 1.0\nGenerator: test\n"
                                   "Root-Is-Purelib: true\nTag: py3-none-any\n",
                   info + "RECORD": "demo.py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n"
                                    + info + "RECORD,,\n"})
    name = "demo-1.0.0-py3-none-any.whl"
    put("files.pythonhosted.org/" + name, data)
    put("pypi.org/simple/demo/index.html",
        '<!DOCTYPE html><html><body><a href="https://files.pythonhosted.org/%s#sha256=%s">%s</a>'
        "</body></html>" % (name, hashlib.sha256(data).hexdigest(), name))


def go():
    base = "proxy.golang.org/example.org/demo/@v/"
    prefix = "example.org/demo@v1.0.0/"
    module = "module example.org/demo\n\ngo 1.18\n"
    put(base + "list", "v1.0.0\n")
    put(base + "v1.0.0.info", '{"Version":"v1.0.0","Time":"2026-01-01T00:00:00Z"}')
    put(base + "v1.0.0.mod", module)
    put(base + "v1.0.0.zip", zipped({prefix + "go.mod": module,
                                     prefix + "demo.go": "package demo\n\nconst Text = `demo of go`\n"}))


def git(path, files):
    work = os.path.join(ROOT, "..", "work-" + os.path.basename(path))
    bare = os.path.join(ROOT, path)
    for name, text in files.items():
        put(os.path.join(work, name), text)
    run = ["git", "-C", work, "-c", "user.name=t", "-c", "user.email=t@t", "-c",
           "init.defaultBranch=master"]
    subprocess.run(run + ["init", "-q"], check=True)
    subprocess.run(run + ["add", "-A"], check=True)
    subprocess.run(run + ["commit", "-q", "-m", "files"], check=True)
    os.makedirs(os.path.dirname(bare), exist_ok=True)
    subprocess.run(["git", "clone", "-q", "--bare", work, bare], check=True)


def cargo():
    data = tar({"demo-1.0.0/Cargo.toml": '[package]\nname = "demo"\nversion = "1.0.0"\n'
                                         'edition = "2021"\n',
                "demo-1.0.0/src/lib.rs": 'pub const TEXT: &str = "demo of cargo";\n'})
    line = json.dumps({"name": "demo", "vers": "1.0.0", "deps": [], "features": {},
                       "cksum": hashlib.sha256(data).hexdigest(), "yanked": False})
    config = json.dumps({"dl": "https://static.crates.io/crates", "api": "https://crates.io"})
    put("static.crates.io/crates/demo/1.0.0/download", data)
    put("index.crates.io/config.json", config)
    put("index.crates.io/de/mo/demo", line + "\n")
    # Older cargos read the index by git.
    git("github.com/rust-lang/crates.io-index.git", {"config.json": config, "de/mo/demo": line + "\n"})
    os.symlink("crates.io-index.git", os.path.join(ROOT, "github.com/rust-lang/crates.io-index"))


npm()
pip()
go()
cargo()
git("github.com/demo/demo.git", {"README": "demo of git\n"})
put("good.example/x", "hello from good\n")
