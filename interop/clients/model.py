"""A model that always does the same: starts deep research, polls it to its end, and repeats what it was told. When its
client gives a poll up, it polls again. If it is asked to be notified, it runs the command that the answer to the start names. Where
there is a tool `work` instead, it calls that again until the work is done.

Speaks as much of the Messages API as Claude Code needs to be led by it, on a port of its own, which it prints.
"""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

QUESTION = "Why is the sky blue? [[sim:ok;words=60;delay_ms=4000]]"


def next_block(request):
    """What the model says next: a call of a tool, or words."""
    names = [tool["name"] for tool in request.get("tools", [])]
    work = next((name for name in names if name.endswith("__work")), None)
    if work:
        return next_work(work, tool_results(request))
    start = next((name for name in names if name.endswith("perplexity_research_start")), None)
    if start is None:
        return {"type": "text", "text": "no tools"}
    results = tool_results(request)
    if not results:
        messages = [{"role": "user", "content": QUESTION}]
        return {"type": "tool_use", "id": "call_0", "name": start, "input": {"messages": messages}}
    told = [answer(result) for result in results]
    if "be notified" in json.dumps(request["messages"][0]):
        return next_of_notified(told, results)
    last = told[-1] or {"status": "GIVEN_UP"}
    if last["status"] in ("CREATED", "IN_PROGRESS", "GIVEN_UP"):
        poll = start.replace("_start", "_poll")
        arguments = {"jobId": told[0]["jobId"]}
        return {"type": "tool_use", "id": f"call_{len(results)}", "name": poll, "input": arguments}
    text = f"{last['status']} after {told.count(None)} polls given up: {last.get('response', '')}"
    return {"type": "text", "text": text}


def next_of_notified(told, results):
    """The command that the answer to the start names, then what it printed, with the time of its end."""
    if len(results) == 1:
        command = told[0]["message"].split("run `")[1].split("`")[0]
        arguments = {"command": f"{command} && date +%s.%N", "description": "Wait for the job", "timeout": 60000}
        return {"type": "tool_use", "id": "call_1", "name": "Bash", "input": arguments}
    lines = text_of(results[1]).split("\n")
    at = next(line for line in lines if line.replace(".", "").isdigit())
    text = f"NOTIFIED {told[0]['jobId']} {at}" if " succeeded " in lines[0] else f"NOT NOTIFIED: {lines}"
    return {"type": "text", "text": text}


def next_work(work, results):
    """The same call until it is answered with its result."""
    told = text_of(results[-1]) if results else ""
    if "done " in told:
        return {"type": "text", "text": f"WORKED in {len(results)} calls: {told}"}
    return {"type": "tool_use", "id": f"call_{len(results)}", "name": work, "input": {"n": 1, "ms": 4000}}


def tool_results(request):
    """What its tools have answered so far."""
    contents = [message["content"] for message in request["messages"] if isinstance(message["content"], list)]
    return [block for content in contents for block in content if block["type"] == "tool_result"]


def text_of(result):
    content = result["content"]
    return content if isinstance(content, str) else content[0]["text"]


def answer(result):
    """What a tool answered; None when its client did not wait for that."""
    try:
        return json.loads(text_of(result))
    except ValueError:
        return None


def events(block):
    """The block as the stream of events that a streamed answer is."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "stand-in", "content": []}
    yield "message_start", {"message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    if block["type"] == "text":
        yield "content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}
        delta = {"type": "text_delta", "text": block["text"]}
        stop = "end_turn"
    else:
        yield "content_block_start", {"index": 0, "content_block": {**block, "input": {}}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        stop = "tool_use"
    yield "content_block_delta", {"index": 0, "delta": delta}
    yield "content_block_stop", {"index": 0}
    yield "message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage}
    yield "message_stop", {}


class Handler(BaseHTTPRequestHandler):
    """Answers every message; everything else is not found."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.split("?")[0] != "/v1/messages":
            self.send_error(404)
            return
        block = next_block(body)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for name, data in events(block):
            self.wfile.write(f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode())

    def do_GET(self):
        self.send_error(404)

    def do_HEAD(self):
        self.send_error(404)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
