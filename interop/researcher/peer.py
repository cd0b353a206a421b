"""Kills runs of gpt-researcher with kill -9 at random moments, for comparison with kills.py (K13).

gpt-researcher keeps nothing of a run: after a kill the user asks again. This counts what is asked for, and paid for, twice.
Its model answers here: the prompts of gpt-researcher are its own, so the answers of the simulator's model would not fit
them. Search engine and web are the simulator's.

    peer.py --python PYTHON --simulator PROGRAM [--runs N] [--seed N]
"""

import argparse
import collections
import hashlib
import http.server
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

QUESTION = "How efficient are heat pumps, and what do they cost?"
ANSWER_TIME = 0.3
LIMIT = 300

RUN = """
import asyncio, sys
from gpt_researcher.utils import costs
# These count tokens with tables that they would download.
costs.estimate_llm_cost = lambda *given, **named: 0.0
costs.estimate_embedding_cost = lambda *given, **named: 0.0
import gpt_researcher.utils.llm, gpt_researcher.context.compression
for module in list(sys.modules.values()):
    for name in ("estimate_llm_cost", "estimate_embedding_cost"):
        if hasattr(module, name):
            setattr(module, name, lambda *given, **named: 0.0)
from gpt_researcher import GPTResearcher

async def main():
    researcher = GPTResearcher(query=sys.argv[1], report_type="research_report", verbose=False)
    await researcher.conduct_research()
    print(await researcher.write_report())

print("READY", flush=True)
asyncio.run(main())
"""


class Model(http.server.BaseHTTPRequestHandler):
    """Answers each prompt of gpt-researcher in the form that it wants, the same prompt always alike."""

    protocol_version = "HTTP/1.1"
    answered = collections.Counter()
    lock = threading.Lock()

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = json.loads(body)
        if self.path.endswith("/embeddings"):
            texts = request["input"]
            count = len(texts) if isinstance(texts, list) else 1
            data = [{"object": "embedding", "index": n, "embedding": [1.0] * 8} for n in range(count)]
            return self.send({"object": "list", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}})
        time.sleep(ANSWER_TIME)
        prompt = "\n".join(str(message["content"]) for message in request["messages"])
        text = answer(prompt)
        if request.get("stream"):
            self.stream(text)
        else:
            message = {"role": "assistant", "content": text}
            usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(text) // 4, "total_tokens": len(prompt) // 4}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self.send({"id": "1", "object": "chat.completion", "model": "scripted", "choices": [choice], "usage": usage})
        with self.lock:
            # Dates and orders of pages differ from run to run; the instruction does not.
            instruction = re.sub(r"\s+", " ", prompt)[:200]
            self.answered[hashlib.sha256(instruction.encode()).hexdigest()] += 1

    def send(self, answer):
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, text):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for part in [text[at : at + 200] for at in range(0, len(text), 200)]:
            choice = {"index": 0, "delta": {"role": "assistant", "content": part}, "finish_reason": None}
            chunk = {"id": "1", "object": "chat.completion.chunk", "model": "scripted", "choices": [choice]}
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            time.sleep(0.02)
        choice = {"index": 0, "delta": {}, "finish_reason": "stop"}
        chunk = {"id": "1", "object": "chat.completion.chunk", "model": "scripted", "choices": [choice]}
        self.wfile.write(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())
        self.close_connection = True


def answer(prompt):
    if "agent_role_prompt" in prompt:
        return json.dumps({"server": "Energy agent", "agent_role_prompt": "You are an engineer."})
    if "search queries" in prompt:
        return json.dumps(["heat pump efficiency", "heat pump cost", "heat pump climate"])
    return "# Heat pumps\n\n" + "A heat pump moves heat. Its efficiency depends on the temperatures.\n\n" * 40


class Peer:
    def __init__(self, options, folder, model, world):
        self.command = [options.python, "-c", RUN, QUESTION]
        self.folder = folder
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": f"http://127.0.0.1:{model}/v1",
            "FAST_LLM": "openai:scripted",
            "SMART_LLM": "openai:scripted",
            "STRATEGIC_LLM": "openai:scripted",
            "EMBEDDING": "custom:scripted",
            "RETRIEVER": "searx",
            "SEARX_URL": f"{world}/searxng/lane=peer/",
            "NO_PROXY": "*",
        }

    def start(self):
        log = open(os.path.join(self.folder, "log"), "ab")
        run = subprocess.Popen(self.command, env=self.environment, cwd=self.folder, stdout=subprocess.PIPE, stderr=log, text=True)
        for line in run.stdout:
            if line.strip() == "READY":
                return run
        raise SystemExit("PROBLEM gpt-researcher does not start: " + open(os.path.join(self.folder, "log")).read()[-3000:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", required=True)
    parser.add_argument("--simulator", required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    folder = tempfile.mkdtemp()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    simulator = subprocess.Popen([options.simulator], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    world = re.search(r"http://[\w.:]+", next(line for line in simulator.stdout if "http://" in line)).group()
    try:
        peer = Peer(options, folder, server.server_address[1], world)
        run = peer.start()
        text, _ = run.communicate(timeout=LIMIT)
        needed = sum(Model.answered.values())
        if run.returncode != 0 or "# Heat pumps" not in text or needed < 3:
            raise SystemExit("PROBLEM an undisturbed run gives no report: " + open(os.path.join(folder, "log")).read()[-3000:])
        lost = again = 0
        for _ in range(options.runs):
            Model.answered.clear()
            run = peer.start()
            killed_after = chance.randint(1, needed)
            while run.poll() is None and sum(Model.answered.values()) < killed_after:
                time.sleep(0.01)
            run.kill()
            run.wait()
            paid = dict(Model.answered)
            run = peer.start()
            run.communicate(timeout=LIMIT)
            lost += sum(paid.values())
            again += sum(min(count, Model.answered[key] - count) for key, count in paid.items())
            print(f"killed after {sum(paid.values())} of {needed} answers", flush=True)
        print(f"gpt-researcher: {options.runs} runs killed once; a run needs {needed} answers; "
              f"{lost} answers were paid for before the kill, and {again} of them again after it")
    finally:
        simulator.kill()


if __name__ == "__main__":
    sys.exit(main())
