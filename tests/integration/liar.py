#!/usr/bin/env python3
# An agent that nobody should trust: it runs its prompt as Python, and speaks the dialect of the name
# by which it is started (claude, codex, node for pi, else the Agent Client Protocol).  Its prompts are
# in tests/integration/85-liar.t; they have what is defined here.
import json
import os
import sys
import time

dialect = {"claude": "claude", "codex": "codex", "node": "pi"}.get(os.path.basename(sys.argv[0]), "acp")


def line(what):
    """A message, or any bytes, as a line."""
    data = what if isinstance(what, bytes) else json.dumps(what).encode()
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.buffer.flush()


def hear():
    """The next message of the host; at the end of stdin there is nothing left to do."""
    text = sys.stdin.readline()
    if not text:
        sys.exit(0)
    return json.loads(text)


def update(**members):
    line({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": members}})


def say(text):
    if dialect == "claude":
        line({"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": text}]}})
    elif dialect == "codex":
        line({"method": "item/completed", "params": {"item": {"type": "agentMessage", "id": "m", "text": text}}})
    elif dialect == "pi":
        line({"type": "message_end", "message": {"role": "assistant", "stopReason": "stop", "content": [{"type": "text", "text": text}]}})
    else:
        update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


def ask(id, command, **more):
    if dialect == "claude":
        line({"type": "control_request", "request_id": id, "request": {"subtype": "can_use_tool", "tool_name": "Bash",
              "input": {"command": command}, "tool_use_id": "c-" + str(id), **more}})
    elif dialect == "codex":
        line({"id": id, "method": "item/commandExecution/requestApproval", "params": {"itemId": "c", "command": command, "cwd": "/", **more}})
    elif dialect == "pi":
        line({"type": "extension_ui_request", "id": id, "method": "confirm", "title": command,
              "message": json.dumps({"toolCallId": "c", "input": {"command": command}}), **more})
    else:
        call = {"toolCallId": "c-" + str(id), "title": command, "kind": "execute", "rawInput": {"command": command}, **more}
        line({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": {"sessionId": "s", "toolCall": call,
              "options": [{"optionId": "y", "kind": "allow_once"}, {"optionId": "n", "kind": "reject_once"}]}})


def call(id, name="Bash", **input):
    if dialect == "claude":
        line({"type": "assistant", "message": {"id": "m", "content": [{"type": "tool_use", "id": id, "name": name, "input": input}]}})
    elif dialect == "codex":
        line({"method": "item/started", "params": {"item": {"type": "commandExecution", "id": id, "command": str(input)}}})
    elif dialect == "pi":
        line({"type": "tool_execution_start", "toolCallId": id, "toolName": name, "args": input})
    else:
        update(sessionUpdate="tool_call", toolCallId=id, title=name, kind="execute", status="pending", rawInput=input)


def done(**more):
    """The last word of a run that went well."""
    if dialect == "claude":
        line({"type": "result", "subtype": "success", "is_error": False, "result": "done", "session_id": "s1", "num_turns": 1, **more})
    elif dialect == "codex":
        line({"method": "turn/completed", "params": {"threadId": "t", "turn": {"id": "u", "status": "completed", **more}}})
    elif dialect == "pi":
        line({"type": "agent_settled", "aborted": False, **more})
    else:
        line({"jsonrpc": "2.0", "id": prompt_id, "result": {"stopReason": "end_turn", **more}})


def text_of(blocks):
    return "".join(b.get("text", "") for b in blocks)


# What comes before the prompt, and the prompt.
prompt = prompt_id = None
while prompt is None:
    m = hear()
    method = m.get("method", m.get("type"))
    if dialect == "claude":
        line({"type": "system", "subtype": "init", "session_id": "s1", "cwd": "/workspace", "tools": []})
        prompt = text_of([m["message"]["content"]] if isinstance(m["message"]["content"], dict) else m["message"]["content"])
    elif dialect == "codex":
        if method == "thread/start" or method == "thread/resume":
            line({"id": m["id"], "result": {"thread": {"id": "t"}}})
        elif method == "turn/start":
            line({"id": m["id"], "result": {"turn": {"id": "u", "status": "inProgress"}}})
            line({"method": "turn/started", "params": {"threadId": "t", "turn": {"id": "u"}}})
            prompt = text_of(m["params"]["input"])
        elif "id" in m:
            line({"id": m["id"], "result": {}})
    elif dialect == "pi":
        line({"type": "response", "id": m["id"], "command": method, "success": True, "data": {"disposition": "started", "sessionId": "s1"}})
        if method == "prompt":
            prompt = m["message"]
    elif method == "session/prompt":
        prompt_id, prompt = m["id"], text_of(m["params"]["prompt"])
    else:
        line({"jsonrpc": "2.0", "id": m["id"], "result": {"protocolVersion": 1, "agentCapabilities": {}, "sessionId": "s"}})
exec(prompt)
while True:
    hear()
