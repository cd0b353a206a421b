"""A small MCP server over streamable HTTP: prints its port, then answers. Headers of each request go into $WRAPPED_LOG."""
import json, os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


DONE = {"content": [{"type": "text", "text": "done"}]}
live, opened = set(), []


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, status, kind=None, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        # A stream that broke is taken up again; there is no other.
        last = self.headers.get("Last-Event-ID")
        if last is None:
            return self.answer(405)
        self.events()
        self.event({"jsonrpc": "2.0", "id": json.loads(last), "result": DONE})

    def do_DELETE(self):
        self.note("DELETE")
        self.answer(200)

    def note(self, method):
        with open(os.environ["WRAPPED_LOG"], "a") as log:
            names = ["Authorization", "X-Own", "Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"]
            log.write(json.dumps([method] + [self.headers.get(name) for name in names]) + "\n")

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
        self.note(method)
        if os.environ.get("WRAPPED_LOCKED"):
            return self.answer(401, "text/plain", b"no")
        if os.environ.get("WRAPPED_MOVED"):
            return self.answer(308, "text/plain", b"", [("Location", "/elsewhere")])
        if self.headers.get("Mcp-Session-Id") not in live | {None}:
            return self.answer(404)
        if id is None:
            if os.environ.get("WRAPPED_HOLDS_NOTES"):
                # Never answered: the client closes the connection.
                self.connection.recv(1)
            return self.answer(202)
        if method == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "web", "version": "1"}}
            # Spread over lines, as some servers do.
            body = json.dumps({"jsonrpc": "2.0", "id": id, "result": result}, indent=1).encode()
            return self.answer(200, "application/json", body, [("Mcp-Session-Id", self.open())])
        if method != "tools/call" and params.get("name") != "hold":
            return self.answer(200, "application/json", json.dumps({"jsonrpc": "2.0", "id": id, "result": {"tools": []}}).encode())
        invalid = b'{"jsonrpc":"2.0","id":' + json.dumps(id).encode() + b',"result":{"content":[{"type":"text","text":"a\xffb"}]}}'
        if params["name"] == "invalid JSON":
            return self.answer(200, "application/json", invalid)
        self.events()
        if params["name"] == "invalid":
            return self.wfile.write(b"data: " + invalid + b"\n\n")
        if params["name"] == "forget":
            live.clear()
        if params["name"] == "endless":
            try:
                self.wfile.write(b"data: ")
                while True:
                    self.wfile.write(b"x" * (1 << 20))
            except OSError:
                return
        if params["name"] == "hold":
            self.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {"held": id}})
            self.connection.recv(1)
            return self.note("closed by the client")
        if params["name"] == "cut":
            return self.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
        if params["name"] == "resume":
            self.wfile.write(b"id: " + json.dumps(id).encode() + b"\n")
            return self.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
        token = (params.get("_meta") or {}).get("progressToken")
        if token is not None:
            self.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
        until = params["arguments"].get("until")
        while until and not os.path.exists(until):
            time.sleep(0.01)
        self.event({"jsonrpc": "2.0", "id": id, "result": DONE})

    def open(self):
        opened.append("s%d" % (len(opened) + 1))
        live.add(opened[-1])
        return opened[-1]

    def events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()

    def event(self, message):
        self.wfile.write(b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n")
        self.wfile.flush()


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
