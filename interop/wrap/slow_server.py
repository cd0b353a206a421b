"""An MCP server whose calls leave a trace: `work` writes `start N` into the file of LEDGER, sleeps, writes `end N` and answers
`done N`. `resources/read` sleeps and answers with its `uri`. `measured` does the same and has an output schema. Calls run beside one another; a cancelled one writes `cancelled N`.
"""

import json
import os
import sys
import threading
import time

ledger = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
lock = threading.Lock()
numbers, cancelled = {}, set()

INPUT = {"type": "object", "properties": {"n": {"type": "integer"}, "ms": {"type": "integer"}}, "required": ["n", "ms"]}
OUTPUT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
TOOLS = [
    {"name": "work", "description": "Works", "inputSchema": INPUT, "annotations": {"readOnlyHint": False}},
    {"name": "measured", "description": "Works, with a schema", "inputSchema": INPUT, "outputSchema": OUTPUT},
]


def note(text):
    os.write(ledger, f"{text}\n".encode())


def answer(request, result, kind="result"):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request, kind: result}) + "\n")
        sys.stdout.flush()


def work(request, name, n, ms):
    note(f"start {n}")
    until = time.monotonic() + ms / 1000
    while time.monotonic() < until:
        if request in cancelled:
            note(f"cancelled {n}")
            return
        time.sleep(0.005)
    note(f"end {n}")
    result = {"content": [{"type": "text", "text": f"done {n}"}]}
    if name == "measured":
        result["structuredContent"] = {"n": n}
    answer(request, result)


def read(request, uri, ms):
    time.sleep(ms / 1000)
    answer(request, {"uri": uri, "contents": []})


for line in sys.stdin:
    message = json.loads(line)
    method, request, params = message.get("method"), message.get("id"), message.get("params", {})
    if method == "initialize":
        answer(request, {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "slow", "version": "1"},
        })
    elif method == "tools/list":
        answer(request, {"tools": TOOLS})
    elif method == "tools/call":
        arguments = params["arguments"]
        threading.Thread(
            target=work, args=(request, params["name"], arguments["n"], arguments["ms"]), daemon=True
        ).start()
    elif method == "resources/read":
        threading.Thread(target=read, args=(request, params["uri"], params.get("ms", 0)), daemon=True).start()
    elif method == "notifications/cancelled":
        cancelled.add(params["requestId"])
    elif method == "ping":
        answer(request, {})
    elif request is not None:
        answer(request, {"code": -32601, "message": f"there is no {method}"}, "error")
