"""latency.py SOCKET SESSION COUNT: runs `true` COUNT times in the session's live jail, one after the
other, and prints the 50th and 95th percentile of its time in microseconds, from the connection to
the frame that tells its end.

What is measured is the daemon and the jail, not this client: it goes before everybody else."""
import json
import os
import socket
import struct
import sys
import time

PAUSE_S = 0.01


def read_exactly(s, n):
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        if not more:
            raise EOFError("the connection ended")
        data += more
    return data


def once(path, session):
    body = json.dumps({"argv": ["true"]})
    begun = time.monotonic()
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        s.connect(path)
        s.sendall(
            f"POST /v1/sessions/{session}/exec HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
            f"Upgrade: agentbox-stdio\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        head = b""
        while b"\r\n\r\n" not in head:
            head += read_exactly(s, 1)
        if not head.startswith(b"HTTP/1.1 101"):
            raise RuntimeError(head.decode())
        while True:
            stream, length = struct.unpack(">BI", read_exactly(s, 5))
            data = read_exactly(s, length)
            if stream == 3:
                took = time.monotonic() - begun
                if json.loads(data).get("code") != 0:
                    raise RuntimeError(data.decode())
                return took


os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
took = []
for _ in range(int(sys.argv[3])):
    took.append(once(sys.argv[1], sys.argv[2]))
    time.sleep(PAUSE_S)
took.sort()
print(int(took[len(took) // 2] * 1e6), int(took[len(took) * 95 // 100] * 1e6))
