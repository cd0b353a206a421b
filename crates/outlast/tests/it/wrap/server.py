"""A small MCP server for the tests of `outlast wrap`: one line in, what the line asks for out. Nothing but Python.

It writes every line that it gets into the file $WRAPPED_LOG, and each call that it carries out into $WRAPPED_LOG.done.
"""
import json, os, signal, sys, threading, time

LOG = os.environ.get("WRAPPED_LOG")
out_lock = threading.Lock()
answers = {}
cancelled = set()


def note(suffix, line):
    if LOG:
        with open(LOG + suffix, "a") as log:
            log.write(line.rstrip("\n") + "\n")


def send(message):
    raw(json.dumps(message, separators=(",", ":"), ensure_ascii=False) + "\n")


def raw(text):
    with out_lock:
        sys.stdout.buffer.write(text if isinstance(text, bytes) else text.encode())
        sys.stdout.buffer.flush()


def until(path, limit=60):
    end = time.time() + limit
    while not os.path.exists(path) and time.time() < end:
        time.sleep(0.01)


def tool(name, **more):
    return {"name": name, "description": name + os.environ.get("WRAPPED_DESCRIPTION", ""), "inputSchema": {"type": "object"}, **more}


TOOLS = [tool("echo", execution={"taskSupport": "optional"}, zeta=1, alpha=[1.0, 2e3]), tool("wait"), tool("progress"), tool("big"),
         tool("schema", outputSchema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}),
         tool("twice"), tool("die"), tool("endless"), tool("ask"), tool("fail"), tool("pid"), tool("change")]


def call(id, name, arguments, token):
    if name != "echo":
        note(".calls", name + " " + json.dumps(arguments))
    text = str(arguments.get("text", name))
    if name in ("wait", "schema") or name == "fail" and "until" in arguments:
        until(arguments["until"])
    if name == "stoppable":
        while id not in cancelled:
            time.sleep(0.01)
        return send({"jsonrpc": "2.0", "id": id, "error": {"code": 0, "message": "Request cancelled"}})
    if name == "late":
        while id not in cancelled:
            time.sleep(0.01)
    if name == "progress":
        for n in range(1, arguments["count"] + 1):
            if token is not None:
                send({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": n, "progressToken": token, "total": arguments["count"], "message": "step %d" % n}})
            if n == arguments.get("pause_at"):
                until(arguments["until"])
    if name == "big":
        if "until" in arguments:
            until(arguments["until"])
        text = "0123456789abcdef" * (arguments["bytes"] // 16)
    if name == "die":
        if "until" in arguments:
            until(arguments["until"])
        os._exit(arguments.get("code", 3))
    if name == "endless":
        if "until" in arguments:
            until(arguments["until"])
        if "errors" in arguments:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            raw(b"x" * (1 << 20))
    if name == "invalid":
        if "until" in arguments:
            until(arguments["until"])
        return raw(b'{"jsonrpc":"2.0","id":' + json.dumps(id).encode() + b',"result":{"content":[{"type":"text","text":"a\xffb"}]}}\n')
    if name == "pid":
        text = str(os.getpid())
    if name == "change":
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    if name == "ask":
        if "until" in arguments:
            until(arguments["until"])
        if arguments.get("roots"):
            send({"jsonrpc": "2.0", "id": "q0", "method": "roots/list"})
        answers["q1"] = threading.Event()
        question = {"message": "sure?", "requestedSchema": {"type": "object", "properties": {}}}
        if arguments.get("url"):
            question = {"mode": "url", "message": "Sign in", "elicitationId": "e1", "url": "https://example.com/?state=hush-hush"}
        send({"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": question})
        answers["q1"].wait(60)
        text = json.dumps(answers["q1-result"])
    note(".done", name + " " + json.dumps(arguments))
    if name == "fail":
        return send({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "no such thing", "data": {"x": 1}}})
    result = {"content": [{"type": "text", "text": text}], "_meta": {"z": 9007199254740993, "a": "é"}}
    if name == "schema":
        result["structuredContent"] = {"n": 5}
    if name == "twice":
        if "until" in arguments:
            until(arguments["until"])
        first = json.dumps({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "first"}]}})
        second = json.dumps({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "second"}]}})
        return raw(first + "\n" + second + "\n")
    send({"jsonrpc": "2.0", "id": id, "result": result})


def slow(id, method, params):
    """Answers a request that is not a call when the file of its `until` is there, after progress and a tagged notification."""
    until(params["until"])
    token = (params.get("_meta") or {}).get("progressToken")
    if token is not None:
        send({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
    send({"jsonrpc": "2.0", "method": "notifications/x", "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": id}}})
    send({"jsonrpc": "2.0", "id": id, "result": {"asked": method, "params": params}})
    note(".done", method + " " + json.dumps(params))


def handle(line):
    note("", line)
    if line.strip() == "exit mid-line":
        raw(b'{"jsonrpc":"2.0","method":"notif')
        os._exit(7)
    if line.strip() == "garbage please":
        raw(b"not json \xff\xfe\n[1,2]\n{\"id\":null}\n")
        e = "é".encode()
        raw(b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"' + e[:1])
        time.sleep(0.05)
        return raw(e[1:] + b'"}}\n')
    try:
        message = json.loads(line)
    except ValueError:
        return
    if not isinstance(message, dict):
        return
    method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method is None:
        if id in answers:
            answers[id + "-result"] = message.get("result", message.get("error"))
            answers[id].set()
    elif method == "notifications/cancelled":
        cancelled.add(params.get("requestId"))
    elif method == "initialize":
        if os.environ.get("WRAPPED_SILENT"):
            return
        send({"jsonrpc": "2.0", "id": id, "result": {"protocolVersion": params.get("protocolVersion", "2025-11-25"), "capabilities": {"tools": {"listChanged": True}, "logging": {}}, "serverInfo": {"name": "wrapped", "version": "1"}, "instructions": "pid %d" % os.getpid()}})
    elif method == "tools/list":
        pages = os.environ.get("WRAPPED_PAGES")
        if pages and not params.get("cursor"):
            return send({"jsonrpc": "2.0", "id": id, "result": {"tools": TOOLS[:1], "nextCursor": "2"}})
        clash = [tool("get_result")] if os.environ.get("WRAPPED_CLASH") else []
        send({"jsonrpc": "2.0", "id": id, "result": {"tools": TOOLS[1:] + clash if pages else TOOLS + clash, "ttlMs": 5}})
    elif method == "invalid/request":
        raw(b'{"jsonrpc":"2.0","id":' + json.dumps(id).encode() + b',"result":{"text":"a\xffb"}}\n')
    elif method == "tools/call":
        token = (params.get("_meta") or {}).get("progressToken")
        threading.Thread(target=call, args=(id, params["name"], params.get("arguments") or {}, token), daemon=True).start()
    elif id is not None and "until" in params:
        threading.Thread(target=slow, args=(id, method, params), daemon=True).start()
    elif id is not None:
        send({"jsonrpc": "2.0", "id": id, "result": {"asked": method, "params": params}})


print("wrapped server is up", file=sys.stderr, flush=True)
if os.environ.get("WRAPPED_STUBBORN"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    handle(line)
for thread in threading.enumerate():
    if thread is not threading.main_thread() and not os.environ.get("WRAPPED_STUBBORN"):
        thread.join(5)
if os.environ.get("WRAPPED_STUBBORN"):
    time.sleep(600)
