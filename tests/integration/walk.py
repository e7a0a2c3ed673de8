"""Every route of the daemon's own document, asked with a key.

walk.py SOCKET KEYFILE OWN.json FOREIGN.json NEVER...

OWN and FOREIGN name a run, a session and a marker of the key's tenant and of another.  A route
whose parameters are the other's must answer as if there were nothing of that name; no answer may
have the other's ids, marker or any of the words NEVER; what is the key's own must be there.  Exits
1 with a line for each that is not so.
"""
import http.client
import json
import socket
import sys


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("agentbox", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


def ask(method, path, key=None, body=None):
    c = Unix(sys.argv[1])
    headers = {"Connection": "close", "Accept": "application/json"}
    if key:
        headers["Authorization"] = "Bearer " + key
    if body is not None:
        headers["Content-Type"] = "application/json"
    c.request(method, path, None if body is None else json.dumps(body), headers)
    r = c.getresponse()
    text = r.read().decode(errors="replace")
    c.close()
    return r.status, text


def path_of(pattern, x):
    path = pattern
    if pattern.startswith("/v1/runs/"):
        path = path.replace("{id}", x["run"])
    if pattern.startswith("/v1/sessions/"):
        path = path.replace("{id}", x["session"])
    for name, value in (("pid", "p1"), ("qid", "q1"), ("port", "3000"), ("path", x["path"])):
        path = path.replace("{%s}" % name, value)
    kinds = {"harnesses": x["harness"], "policies": x["policy"], "keys": x["tenant"]}
    return path.replace("{name}", kinds.get((pattern.split("/") + [""] * 3)[2], "main"))


def detail(text):
    try:
        return json.loads(text).get("detail", "")
    except ValueError:
        return text


def main():
    key = open(sys.argv[2], encoding="utf-8").read().strip()
    own, foreign = (json.load(open(p, encoding="utf-8")) for p in sys.argv[3:5])
    never = sys.argv[5:] + [foreign[k] for k in ("run", "session", "marker", "tenant")]
    nowhere = dict(foreign, run="run_" + "0" * 26, session="ses_" + "0" * 26)
    wrong, walked, seen = [], 0, 0
    document = json.loads(ask("GET", "/v1/openapi.json")[1])
    for pattern, operations in document["paths"].items():
        for method, operation in operations.items():
            method = method.upper()
            what = method + " " + pattern
            scope = operation.get("x-agentbox-scope")
            body = {} if "requestBody" in operation else None
            status, text = ask(method, path_of(pattern, foreign), key, body)
            walked += 1
            if scope is None:
                wrong.append(what + ": says nothing about keys")
            named = [w for w in never if w in text.replace(path_of(pattern, foreign), "")]
            if scope in ("run", "session", "events"):
                none, words = ask(method, path_of(pattern, nowhere), key, body)
                want = detail(words).replace(nowhere["run"], foreign["run"])
                want = want.replace(nowhere["session"], foreign["session"])
                if (status, detail(text)) != (none, want) or (status != 404):
                    if not (method == "HEAD" and status == none == 404):
                        wrong.append("%s: %d %s" % (what, status, text[:200]))
                named = []
                if foreign["marker"] in text:
                    named = [foreign["marker"]]
                mine, text = ask(method, path_of(pattern, own), key, body) \
                    if method == "GET" else (0, "")
                if method == "GET" and "ports" not in pattern and mine != 200:
                    wrong.append("%s: not even its own: %d %s" % (what, mine, text[:200]))
                seen += mine == 200
            elif scope == "operator" and status != 403:
                wrong.append("%s: is for no key, and answers %d" % (what, status))
            elif scope == "view" and own["session"] in text:
                seen += 1
            if named:
                wrong.append("%s: has %s in %s" % (what, named, text[:300]))
    for line in wrong:
        print(line)
    print("%d operations, %d with something of its own" % (walked, seen))
    return 1 if wrong or walked < 40 or seen < 8 else 0


sys.exit(main())
