"""A collector of traces by OTLP over HTTP: collector.py PORT DIR

Strict: what is not as the protocol's JSON wants it is a line in DIR/faults.  Spans it has taken
are lines of JSON in DIR/spans, requests in DIR/requests.  How it answers is the word in DIR/mode,
read anew each time: ok, STATUS, later (429, Retry-After: 1), hang, partial.
"""
import http.server, json, os, re, sys, threading, time

port, where = int(sys.argv[1]), sys.argv[2]
lock = threading.Lock()
MEMBERS = {"traceId", "spanId", "parentSpanId", "traceState", "name", "kind", "startTimeUnixNano",
           "endTimeUnixNano", "attributes", "status"}


def note(name, what):
    with lock, open(os.path.join(where, name), "a") as f:
        f.write(json.dumps(what) + "\n")


def mode():
    try:
        with open(os.path.join(where, "mode")) as f:
            return f.read().strip()
    except FileNotFoundError:
        return "ok"


def want(holds, what):
    if not holds:
        raise ValueError(what)


def attributes(all):
    seen = {}
    for a in all:
        want(set(a) == {"key", "value"} and a["key"] and a["key"] not in seen, f"attribute {a}")
        (kind, value), = a["value"].items()
        want(kind in ("stringValue", "intValue"), f"a value of {a}")
        want(isinstance(value, str), f"64 bits are a string: {a}")
        want(kind != "intValue" or re.fullmatch(r"-?\d+", value), f"no number: {a}")
        seen[a["key"]] = value if kind == "stringValue" else int(value)
    return seen


def span(s):
    want(set(s) <= MEMBERS and MEMBERS - {"parentSpanId", "traceState", "status"} <= set(s), f"members {sorted(s)}")
    want(re.fullmatch(r"[0-9a-f]{32}", s["traceId"]) and int(s["traceId"], 16), f"trace id {s['traceId']}")
    want(re.fullmatch(r"[0-9a-f]{16}", s["spanId"]) and int(s["spanId"], 16), f"span id {s['spanId']}")
    want("parentSpanId" not in s or re.fullmatch(r"[0-9a-f]{16}", s["parentSpanId"]), "parent's id")
    want(isinstance(s["name"], str) and s["name"], "no name")
    want(type(s["kind"]) is int and 1 <= s["kind"] <= 5, "kind")
    for t in ("startTimeUnixNano", "endTimeUnixNano"):
        want(isinstance(s[t], str) and re.fullmatch(r"\d{19}", s[t]), f"time {s[t]!r}")
        want(abs(int(s[t]) / 1e9 - time.time()) < 600, f"a time of another day {s[t]}")
    want(int(s["startTimeUnixNano"]) <= int(s["endTimeUnixNano"]), "it ends before it begins")
    want("status" not in s or (s["status"].get("code") == 2 and set(s["status"]) == {"code", "message"}), "status")
    return {**s, "attributes": attributes(s["attributes"])}


def spans(body):
    want(set(body) == {"resourceSpans"} and body["resourceSpans"], "resourceSpans")
    for r in body["resourceSpans"]:
        want(set(r) == {"resource", "scopeSpans"} and set(r["resource"]) == {"attributes"}, "resource")
        resource = attributes(r["resource"]["attributes"])
        want(resource["service.name"] and resource["service.version"], "whose it is")
        for x in r["scopeSpans"]:
            want(set(x) == {"scope", "spans"} and x["scope"]["name"] == "agentbox" and x["spans"], "scope")
            for s in x["spans"]:
                yield {**span(s), "resource": resource}


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, body=b"{}", *headers):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        how, all = mode(), []
        try:
            want(self.path == "/v1/traces", f"path {self.path}")
            want(self.headers["content-type"] == "application/json", "content-type")
            all = list(spans(json.loads(body)))
        except Exception as e:
            note("faults", f"{type(e).__name__}: {e}")
        note("requests", {"at": time.time(), "mode": how, "bytes": len(body), "spans": len(all),
                          "auth": self.headers["authorization"], "org": self.headers["x-scope-orgid"]})
        if how in ("ok", "partial"):
            for s in all:
                note("spans", s)
        if how == "hang":
            time.sleep(30)
        elif how == "later":
            self.answer(429, b"{}", ("Retry-After", "1"))
        elif how == "partial":
            self.answer(200, b'{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too\\n{\\"old"}}')
        else:
            self.answer(200 if how == "ok" else int(how))


http.server.ThreadingHTTPServer.daemon_threads = True
http.server.ThreadingHTTPServer(("127.0.0.1", port), Collector).serve_forever()
