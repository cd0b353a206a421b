"""Kills the client, its stdio server, the detached worker, or server and worker together at a random moment of a command
(H1), and looks at what is left.

What must hold, whatever was killed and when:
- no command runs twice: it notes every run in a file;
- a command whose worker lives gives its result to the next client;
- every other job ends with its result or with "may or may not have happened";
- the next job works;
- at the end no process and no socket is left.
"""

import json
import re
import sys
import time
from pathlib import Path

from kills import LIMIT, UNSURE, Client, World, run

VICTIMS = ("client", "front", "worker", "front and worker")
COMMAND = """
import os, sys, time
n, ms = sys.stdin.read().split()
ledger = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
os.write(ledger, f"start {n}\\n".encode())
time.sleep(int(ms) / 1000)
os.write(ledger, f"end {n}\\n".encode())
print("done", n)
"""


class WorkerWorld(World):
    victims = VICTIMS

    def __init__(self, outlast, seed):
        super().__init__(outlast, seed)
        (self.folder / "work.py").write_text(COMMAND)
        words = [sys.executable, str(self.folder / "work.py"), str(self.ledger)]
        (self.folder / "outlast.toml").write_text(f'[[workflow]]\nname = "work"\ncommand = {json.dumps(words)}\n')
        self.command = [outlast, "serve", "--tools", "jobs", "--config", str(self.folder / "outlast.toml")]
        self.environment |= {"OUTLAST_TEST_WORKER_IDLE_MS": "1000", "OUTLAST_DETACH": "true"}

    def processes(self):
        """Whatever has this world's folder in its command or its environment."""
        mark = str(self.folder).encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    line = (entry / "cmdline").read_bytes()
                    if line and (mark in line or mark in (entry / "environ").read_bytes()):
                        yield int(entry.name), line.replace(b"\0", b" ").decode()
                except OSError:
                    pass

    def sockets(self):
        return (self.folder / "data").glob("*.sockets/*")

    def find(self, victim, client):
        found = {"client": [client.process.pid], "front": [client.front]}
        found["worker"] = [pid for pid, line in self.processes() if " worker --detached" in line]
        return [pid for name in victim.split(" and ") for pid in found[name]]

    def start(self, client, n, ms):
        client.call("start_job", {"workflow": "work", "message": f"{n} {ms}", "idempotency_key": f"key-{n}"})

    def begin(self, client, n, ms):
        self.start(client, n, ms)

    def after(self, victim, first, n, ms):
        self.client = first
        if victim != "worker":
            first.leave()
            self.client = Client(self)
        else:
            first.answer()
        # The key makes it the same job, whether or not the first answer arrived.
        outcome = self.finish(n, ms, is_sure="worker" not in victim)
        self.finish(1_000_000 + n, 0, is_sure=True)
        self.counts["next jobs"] += 1
        self.client.leave()
        return outcome

    def finish(self, n, ms, is_sure):
        self.start(self.client, n, ms)
        text = self.client.answer() or ""
        job = re.search(r"\b[0-9a-f]{32}\b", text)
        until = time.monotonic() + LIMIT
        while job and time.monotonic() < until:
            self.client.call("get_job", {"job_id": job.group(), "wait_seconds": 5})
            text = self.client.answer() or ""
            if f"done {n}" in text:
                return "results"
            if "SUBMIT_UNKNOWN" in text and not is_sure:
                return UNSURE
            if '"status":"failed"' in text.replace(" ", "") or "SILENCE" in text:
                break
        self.problems.append(f"job {n}, {self.victim} killed: answered with {text}")
        return "wrong"


run(WorkerWorld)
