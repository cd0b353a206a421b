"""The same session with a server and with `outlast wrap` before that server, line by line.

Every line that the client receives, and every line that the server receives, must be the same bytes in both sessions. The
exceptions are those of H3: `get_result` on the last page of tools/list, and the id and the progressToken of a tools/call.
Times of day in answers are made equal first; nothing else is.
"""

import argparse
import json
import queue
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

LIMIT = 60
TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[^\"\\ ]*|\d{1,2}:\d\d:\d\d [AP]M")
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "equal", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
ANSWERS = {
    "roots/list": {"roots": [{"uri": "file:///tmp", "name": "tmp"}]},
    "sampling/createMessage": {"role": "assistant", "content": {"type": "text", "text": "said"}, "model": "none"},
    "elicitation/create": {"action": "decline"},
}

# Copies what the server is sent into a file: TEE FILE COMMAND...
TEE = """
import subprocess, sys, threading
child = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE)
with open(sys.argv[1], "wb") as file:
    for line in sys.stdin.buffer:
        file.write(line); file.flush()
        child.stdin.write(line); child.stdin.flush()
child.stdin.close()
sys.exit(child.wait())
"""


def calls(server, folder):
    """The requests of a session: method and params."""
    if server == "everything":
        tools = [
            ("echo", {"message": "h\u00e9llo \U0001f600 \u2028 \"quoted\" \\ / \x01"}),
            ("get-sum", {"a": 1e15, "b": 0.1}),
            ("get-tiny-image", {}),
            ("get-structured-content", {"location": "Chicago"}),
            ("get-annotated-message", {"messageType": "error", "includeImage": True}),
            ("get-resource-links", {"count": 3}),
            ("trigger-long-running-operation", {"duration": 1, "steps": 4}),
            ("trigger-sampling-request", {"prompt": "p", "maxTokens": 5}),
            ("trigger-elicitation-request", {}),
            ("echo", {}),
            ("unknown", {}),
        ]
        others = [
            ("prompts/list", {}),
            ("prompts/get", {"name": "simple-prompt"}),
            ("prompts/get", {"name": "args-prompt", "arguments": {"city": "Paris"}}),
            ("prompts/get", {"name": "unknown"}),
            ("resources/list", {}),
            ("resources/templates/list", {}),
            ("resources/read", {"uri": "demo://resource/dynamic/text/1"}),
            ("resources/subscribe", {"uri": "demo://resource/dynamic/text/1"}),
            ("resources/unsubscribe", {"uri": "demo://resource/dynamic/text/1"}),
            ("completion/complete", {"ref": {"type": "ref/prompt", "name": "completable-prompt"},
                                     "argument": {"name": "department", "value": "E"}}),
            ("logging/setLevel", {"level": "error"}),
        ]
    elif server == "filesystem":
        path = str(folder / "file.txt")
        tools = [
            ("write_file", {"path": path, "content": "one\ntwo \u00fc\n"}),
            ("read_text_file", {"path": path}),
            ("edit_file", {"path": path, "edits": [{"oldText": "one", "newText": "1"}]}),
            ("list_directory", {"path": str(folder)}),
            ("search_files", {"path": str(folder), "pattern": "*.txt"}),
            ("list_allowed_directories", {}),
            ("read_text_file", {"path": "/etc/passwd"}),
        ]
        others = []
    elif server == "memory":
        tools = [
            ("create_entities", {"entities": [{"name": "a", "entityType": "t", "observations": ["o"]},
                                              {"name": "b", "entityType": "t", "observations": []}]}),
            ("create_relations", {"relations": [{"from": "a", "to": "b", "relationType": "knows"}]}),
            ("add_observations", {"observations": [{"entityName": "a", "contents": ["p"]}]}),
            ("read_graph", {}),
            ("search_nodes", {"query": "a"}),
            ("delete_entities", {"entityNames": ["b"]}),
            ("open_nodes", {"names": ["a", "b"]}),
        ]
        others = []
    else:
        tools = [
            ("get_current_time", {"timezone": "Europe/Berlin"}),
            ("convert_time", {"source_timezone": "Europe/Berlin", "time": "12:30", "target_timezone": "Asia/Tokyo"}),
            ("convert_time", {"source_timezone": "Nowhere", "time": "x", "target_timezone": "y"}),
        ]
        others = []
    yield "tools/list", {}
    for number, (name, arguments) in enumerate(tools):
        params = {"name": name, "arguments": arguments}
        if number % 2 == 0:
            params["_meta"] = {"progressToken": f"token {number}", "com.example/kept": [1.50, None]}
        yield "tools/call", params
    yield from others
    yield "ping", {}
    yield "com.example/unknown", {"x": [1, {"y": None}]}


class Session:
    """One process on a pipe, spoken to line by line."""

    def __init__(self, command):
        self.received = []
        self.lines = queue.Queue()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def send(self, message):
        # Written in a way of its own: spaces and escapes must pass as they are.
        self.process.stdin.write(json.dumps(message, separators=(", ", " :")).encode() + b"\n")
        self.process.stdin.flush()

    def until(self, wanted):
        """Takes lines in up to the answer of this id."""
        while True:
            line = self.lines.get(timeout=LIMIT)
            if line is None:
                raise SystemExit(f"the server ended before it answered {wanted}")
            self.received.append(line)
            message = json.loads(line)
            if "method" in message and "id" in message:
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": ANSWERS.get(message["method"], {})})
            elif message.get("id") == wanted and "method" not in message:
                return message

    def request(self, number, method, params):
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return self.until(number)

    def close(self):
        self.process.stdin.close()
        code = self.process.wait(timeout=LIMIT)
        while (line := self.lines.get(timeout=LIMIT)) is not None:
            self.received.append(line)
        return code


def run(command, server, folder, era):
    """One session; every line that came."""
    session = Session(command)
    if era == "legacy":
        session.request("init", "initialize", {
            "protocolVersion": "2025-11-25",
            "capabilities": {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}},
            "clientInfo": {"name": "equal", "version": "1"},
        })
        session.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        # What the server does at its start is done when it answers, and what it asks for comes before the first call.
        session.request("ready", "ping", {})
    else:
        session.request("discover", "server/discover", {"_meta": META})
    for number, (method, params) in enumerate(calls(server, folder)):
        if era != "legacy":
            params = {**params, "_meta": {**params.get("_meta", {}), **META}}
        session.request(number, method, params)
    return session.received, session.close()


def without_result_tool(line):
    """A line without the tool that wrap adds, and whether it was there."""
    text = line.decode()
    if '"get_result"' not in text:
        return line, False
    tools = json.loads(text)["result"]["tools"]
    assert [tool["name"] for tool in tools].count("get_result") == 1 and tools[-1]["name"] == "get_result", tools
    start = text.index('"get_result"')
    while True:
        start = text.rindex("{", 0, start)
        tool, end = json.JSONDecoder().raw_decode(text, start)
        if tool.get("name") == "get_result":
            break
    start -= text[start - 1] == ","
    return (text[:start] + text[end:]).encode(), True


def sent_equal(plain, wrapped):
    """Compares what the server was sent: the same bytes but for ids and tokens of calls."""
    for before, after in zip(plain, wrapped):
        if before == after:
            continue
        old, new = json.loads(before), json.loads(after)
        if old.get("method") != "tools/call":
            return before, after
        expected = before.replace(b'"id" :%d' % old["id"], b'"id" :' + json.dumps(new["id"]).encode(), 1)
        token = old["params"].get("_meta", {}).get("progressToken")
        if token is not None:
            value = json.dumps(new["params"]["_meta"]["progressToken"]).encode()
            expected = expected.replace(b'"progressToken" :' + json.dumps(token).encode(), b'"progressToken" :' + value, 1)
        if expected != after:
            return expected, after
    return None if len(plain) == len(wrapped) else (b"%d lines" % len(plain), b"%d lines" % len(wrapped))


def compare(name, era, command, outlast):
    """Both sessions of one server; prints a row and says whether they were equal."""
    both = []
    # Both see the same names of files.
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        shown = folder / "shown"
        for wrap in [[], [outlast, "--data-dir", str(folder / "data"), "wrap", "--"]]:
            subprocess.run(["rm", "-rf", shown], check=True)
            shown.mkdir()
            sent = folder / "sent"
            real = [part.replace("FOLDER", str(shown)) for part in command]
            tee = [sys.executable, "-c", TEE, str(sent), *real]
            received, code = run([*wrap, *tee], name, shown, era)
            both.append((received, code, sent.read_bytes().splitlines(keepends=True)))
    (plain, plain_code, plain_sent), (wrapped, wrapped_code, wrapped_sent) = both
    shown = [without_result_tool(line) for line in wrapped]
    added = sum(was for _, was in shown)
    timeless = [[TIME.sub(b"TIME", line) for line in lines] for lines in (plain, [line for line, _ in shown])]
    wrong = next(((a, b) for a, b in zip(*timeless) if a != b), None)
    if wrong is None and len(plain) != len(wrapped):
        wrong = (b"%d lines" % len(plain), b"%d lines" % len(wrapped))
    wrong = wrong or sent_equal(plain_sent, wrapped_sent)
    if added != 1:
        wrong = wrong or (b"get_result once", b"%d times" % added)
    if wrapped_code != 0:
        wrong = wrong or (b"exit code 0", b"exit code %d" % wrapped_code)
    print(f"{name:12}{era:8}{len(plain):5} received {len(plain_sent):5} sent   {'DIFFERENT' if wrong else 'equal'}")
    if wrong:
        at = next((at for at, (a, b) in enumerate(zip(*wrong)) if a != b), min(map(len, wrong)))
        for what, line in zip(("without", "with"), wrong):
            print(f"  {what}, from byte {at}: {line[max(at - 100, 0):at + 200].decode(errors='replace')}")
    return not wrong


parser = argparse.ArgumentParser()
parser.add_argument("--outlast", required=True)
parser.add_argument("--node-servers", required=True)
parser.add_argument("--python", required=True)
args = parser.parse_args()
servers = {
    "everything": [f"{args.node_servers}/mcp-server-everything"],
    "filesystem": [f"{args.node_servers}/mcp-server-filesystem", "FOLDER"],
    "memory": ["env", "MEMORY_FILE_PATH=FOLDER/memory.json", f"{args.node_servers}/mcp-server-memory"],
    "time": [args.python, "-m", "mcp_server_time", "--local-timezone", "UTC"],
}
good = [compare(name, era, command, args.outlast) for era in ("legacy", "modern") for name, command in servers.items()]
sys.exit(0 if all(good) else 1)
