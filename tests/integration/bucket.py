"""An S3 server as strict as the specification: bucket.py PORT DIR.

It takes a request only with a valid signature of version 4 (its own reading of the rules, not
agentbox's), a date of now, and a body that is what was signed.  DIR/objects/ has what it holds (names
as SHA-256 of the key; DIR/index lists keys), DIR/log one JSON line a request, DIR/mode says how the
next requests go wrong: "KIND [TIMES [OPERATION]]".
"""
import datetime
import hashlib
import hmac
import http.server
import json
import os
import socket
import sys
import threading
import time
import urllib.parse

PORT, DIR = int(sys.argv[1]), sys.argv[2]
BUCKET, REGION = "results", "eu-test-1"
ACCESS, SECRET, TOKEN = "AKIATESTKEY", "se/cret+Key", os.environ.get("BUCKET_TOKEN", "")
LEAST_PART = 5 << 20
lock = threading.Lock()
objects, uploads = {}, {}
os.makedirs(DIR + "/objects", exist_ok=True)


def quote(text, safe=""):
    return urllib.parse.quote(text, safe=safe + "-._~")


def keep():
    with open(DIR + "/index.new", "w") as f:
        for key in sorted(objects):
            f.write(json.dumps({"key": key, **objects[key]}) + "\n")
    os.replace(DIR + "/index.new", DIR + "/index")
    with open(DIR + "/parts.new", "w") as f:
        f.write("%d\n" % len(uploads))
    os.replace(DIR + "/parts.new", DIR + "/parts")


def store(key, body, headers):
    name = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
    with open(DIR + "/objects/" + name, "wb") as f:
        f.write(body)
    objects[key] = {"file": name, "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest(),
                    "type": headers.get("content-type"), "disposition": headers.get("content-disposition"),
                    "meta": headers.get("x-amz-meta-sha256"), "sse": headers.get("x-amz-server-side-encryption")}


def mode(operation):
    """The fault of this request, or ""."""
    with lock:
        try:
            words = open(DIR + "/mode").read().split()
        except FileNotFoundError:
            return ""
        if not words or (len(words) > 2 and words[2] != operation):
            return ""
        if len(words) > 1:
            left = int(words[1]) - 1
            with open(DIR + "/mode.new", "w") as f:
                f.write(" ".join([words[0], str(left)] + words[2:]) if left > 0 else "")
            os.replace(DIR + "/mode.new", DIR + "/mode")
        return words[0]


class Refused(Exception):
    def __init__(self, status, code, message=""):
        super().__init__(code)
        self.status, self.code, self.message = status, code, message


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    # ---- answers ----
    def reply(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def xml(self, status, root, inner, cut=False):
        text = ('<?xml version="1.0" encoding="UTF-8"?>\n<%s xmlns="http://s3.amazonaws.com/doc/2006-03-01/">%s</%s>'
                % (root, inner, root)).encode()
        self.reply(status, text[:len(text) // 2] if cut else text, [("Content-Type", "application/xml")])

    def error(self, status, code, message="", headers=()):
        text = "<Error><Code>%s</Code><Message>%s</Message></Error>" % (code, message)
        self.reply(status, text.encode(), headers)

    # ---- the signature ----
    def canonical_query(self, without=()):
        pairs = urllib.parse.parse_qsl(self.raw_query, keep_blank_values=True, strict_parsing=bool(self.raw_query))
        return "&".join("%s=%s" % (quote(k), quote(v)) for k, v in sorted(pairs) if k not in without)

    def signature(self, stamp, scope, names, query, payload):
        lines = [self.command, self.raw_path, query]
        lines += ["%s:%s" % (n, " ".join((self.headers.get(n) or "").split())) for n in names]
        lines += ["", ";".join(names), payload]
        text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256("\n".join(lines).encode()).hexdigest()])
        key = ("AWS4" + SECRET).encode()
        for part in scope.split("/") + [text]:
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return key.hex()

    def check_time(self, stamp, seconds):
        at = datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
        age = (datetime.datetime.now(datetime.timezone.utc) - at).total_seconds()
        if age > seconds or age < -900:
            raise Refused(403, "RequestTimeTooSkewed" if seconds == 900 else "AccessDenied", "Request has expired")

    def check_scope(self, credential, stamp):
        access, _, scope = credential.partition("/")
        if access != ACCESS:
            raise Refused(403, "InvalidAccessKeyId")
        if scope != "%s/%s/s3/aws4_request" % (stamp[:8], REGION):
            raise Refused(400, "AuthorizationHeaderMalformed")
        return scope

    def check_link(self, query):
        one = {k: v[0] for k, v in query.items()}
        scope = self.check_scope(one["X-Amz-Credential"], one["X-Amz-Date"])
        self.check_time(one["X-Amz-Date"], int(one["X-Amz-Expires"]))
        if TOKEN and one.get("X-Amz-Security-Token") != TOKEN:
            raise Refused(403, "InvalidToken")
        want = self.signature(one["X-Amz-Date"], scope, one["X-Amz-SignedHeaders"].split(";"),
                              self.canonical_query(["X-Amz-Signature"]), "UNSIGNED-PAYLOAD")
        if want != one["X-Amz-Signature"]:
            raise Refused(403, "SignatureDoesNotMatch")

    def check_header(self, body):
        kind, _, rest = (self.headers.get("authorization") or "").partition(" ")
        if kind != "AWS4-HMAC-SHA256":
            raise Refused(403, "AccessDenied", "no signature")
        one = dict(x.strip().split("=", 1) for x in rest.split(","))
        names = one["SignedHeaders"].split(";")
        stamp, payload = self.headers["x-amz-date"], self.headers["x-amz-content-sha256"]
        scope = self.check_scope(one["Credential"], stamp)
        self.check_time(stamp, 900)
        unsigned = [n for n in self.headers if n.lower().startswith("x-amz-") and n.lower() not in names]
        if names != sorted(names) or "host" not in names or unsigned:
            raise Refused(403, "AccessDenied", "headers are not signed: %s" % unsigned)
        if TOKEN and self.headers.get("x-amz-security-token") != TOKEN:
            raise Refused(403, "InvalidToken")
        if self.signature(stamp, scope, names, self.canonical_query(), payload) != one["Signature"]:
            raise Refused(403, "SignatureDoesNotMatch")
        if hashlib.sha256(body).hexdigest() != payload:
            raise Refused(400, "XAmzContentSHA256Mismatch")

    # ---- requests ----
    def operation(self, query):
        if self.command == "PUT":
            return "part" if "partNumber" in query else "put"
        if self.command == "POST":
            return "create" if "uploads" in query else "complete"
        if self.command == "DELETE":
            return "abort" if "uploadId" in query else "delete"
        return "get"

    def handle_one(self):
        self.raw_path, _, self.raw_query = self.path.partition("?")
        query = urllib.parse.parse_qs(self.raw_query, keep_blank_values=True)
        operation = self.operation(query)
        fault = mode(operation)
        if fault == "cut":
            self.rfile.read(min(1000, int(self.headers.get("content-length") or 0)))
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.close_connection = True
            self.connection.close()
            return operation, fault, ""
        if fault == "hang":
            self.close_connection = True
            self.server.hung.append(self.connection.dup())
            return operation, fault, ""
        if fault == "early":  # before the body is there
            self.close_connection = True
            self.error(503, "SlowDown", "early", [("Connection", "close")])
            return operation, fault, ""
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if fault == "slow":
            time.sleep(0.7)
        key = urllib.parse.unquote(self.raw_path, errors="surrogateescape")
        prefix = "/%s/" % BUCKET
        if not key.startswith(prefix):
            self.error(404, "NoSuchBucket", "The specified bucket does not exist")
            return operation, fault, key
        key = key[len(prefix):]
        if fault in ("500", "503", "429", "403", "400"):
            codes = {"500": "InternalError", "503": "SlowDown", "429": "TooManyRequests", "403": "AccessDenied",
                     "400": "InvalidArgument"}
            self.error(int(fault), codes[fault], "as told")
            return operation, fault, key
        if fault == "later":
            self.error(503, "SlowDown", "Please reduce your request rate", [("Retry-After", "1")])
            return operation, fault, key
        try:
            if "X-Amz-Signature" in query:
                self.check_link(query)
            else:
                self.check_header(body)
            with lock:
                getattr(self, "do_" + operation)(key, query, body, fault)
                keep()
        except Refused as e:
            self.error(e.status, e.code, e.message)
            return operation, e.code, key
        return operation, fault, key

    def do_put(self, key, query, body, fault):
        store(key, body, self.headers)
        self.reply(200, b"", [("ETag", '"%s"' % hashlib.md5(body).hexdigest())])

    def do_create(self, key, query, body, fault):
        upload = "up/%d+=&" % len(self.server.seen)
        self.server.seen.append(upload)
        uploads[upload] = {"key": key, "parts": {}, "headers": self.headers}
        self.xml(200, "InitiateMultipartUploadResult", "<Bucket>%s</Bucket><Key>k</Key><UploadId>%s</UploadId>"
                 % (BUCKET, upload.replace("&", "&amp;")), fault == "torn")

    def upload(self, key, query):
        upload = uploads.get(query["uploadId"][0])
        if not upload or upload["key"] != key:
            raise Refused(404, "NoSuchUpload")
        return upload

    def do_part(self, key, query, body, fault):
        upload = self.upload(key, query)
        upload["parts"][int(query["partNumber"][0])] = body
        etag = '"%s"' % hashlib.md5(body).hexdigest()
        self.reply(200, b"", [] if fault == "untagged" else [("ETag", etag)])

    def do_complete(self, key, query, body, fault):
        upload = self.upload(key, query)
        if fault == "late":  # 200, and then the error
            self.xml(200, "Error", "<Code>InternalError</Code><Message>We encountered an internal error.</Message>")
            return
        parts = upload["parts"]
        want = "<CompleteMultipartUpload>" + "".join(
            '<Part><PartNumber>%d</PartNumber><ETag>"%s"</ETag></Part>' % (n, hashlib.md5(parts[n]).hexdigest())
            for n in sorted(parts)) + "</CompleteMultipartUpload>"
        if body.decode() != want or sorted(parts) != list(range(1, len(parts) + 1)):
            raise Refused(400, "InvalidPart")
        if any(len(parts[n]) < LEAST_PART for n in list(sorted(parts))[:-1]):
            raise Refused(400, "EntityTooSmall")
        store(key, b"".join(parts[n] for n in sorted(parts)), upload["headers"])
        del uploads[query["uploadId"][0]]
        self.xml(200, "CompleteMultipartUploadResult", "<Key>k</Key><ETag>x</ETag>", fault == "torn")

    def do_abort(self, key, query, body, fault):
        self.upload(key, query)
        del uploads[query["uploadId"][0]]
        self.reply(204)

    def do_delete(self, key, query, body, fault):
        if key in objects:
            os.unlink(DIR + "/objects/" + objects.pop(key)["file"])
        self.reply(204)

    def do_get(self, key, query, body, fault):
        if key not in objects:
            raise Refused(404, "NoSuchKey")
        o = objects[key]
        with open(DIR + "/objects/" + o["file"], "rb") as f:
            self.reply(200, f.read(), [("Content-Type", o["type"]), ("Content-Disposition", o["disposition"])])

    def any(self):
        try:
            operation, outcome, key = self.handle_one()
        except (ConnectionError, KeyError, ValueError) as e:
            operation, outcome, key = "?", repr(e), ""
            self.close_connection = True
        with lock, open(DIR + "/log", "a") as f:
            f.write(json.dumps({"op": operation, "outcome": outcome, "key": key, "at": time.time()}) + "\n")

    do_GET = do_PUT = do_POST = do_DELETE = any


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64
    daemon_threads = True
    seen = []
    hung = []  # descriptors that keep a connection open


keep()
Server(("127.0.0.1", PORT), Handler).serve_forever()
