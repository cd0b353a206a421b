"""Kills runs of the researcher with kill -9 at random moments, and compares what comes out (K2, K13).

What must hold, whenever its worker was killed:
- every run ends, with the same text and the same sources as an undisturbed run;
- no request whose answer was recorded is sent again: each repeated request belongs to a step that was open when its
  worker was killed.

With --term, workers are ended with SIGTERM while the model works on an answer that has a price. Such a worker waits for
the answer and records it, so no run ends with SUBMIT_UNKNOWN and nothing at all is sent again.

The model, the search engine and the web are the simulator's. Every run has a store of its own.
"""

import argparse
import collections
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

QUESTION = "How efficient are heat pumps, and what do they cost?"
LIMIT = 120


class Run:
    """One run of the researcher, in a store of its own."""

    def __init__(self, world, name, slow):
        self.world, self.lane = world, f"lane={name},slow={slow}"
        self.folder = world.folder / name
        self.folder.mkdir()
        self.store = self.folder / "outlast.db"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "OUTLAST_DATA_DIR": str(self.folder),
            "OUTLAST_PROVIDERS": "researcher",
            "OUTLAST_MODEL_URL": f"{world.url}/llm/{self.lane}/v1",
            "OUTLAST_MODEL": "scripted",
            "OUTLAST_SEARCH": "searxng",
            "OUTLAST_SEARCH_URL": f"{world.url}/searxng/{self.lane}",
            "OUTLAST_CITATIONS_ALLOW_PRIVATE": "true",
            "OUTLAST_TEST_WORKER_IDLE_MS": "500",
            "NO_PROXY": "*",
        }

    def outlast(self, *arguments, limit=LIMIT):
        command = [self.world.outlast, *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=limit)

    def set_prices(self):
        """Gives each answer a price, and forbids to buy one again."""
        folder = self.folder / ".config" / "outlast"
        folder.mkdir(parents=True)
        (folder / "outlast.toml").write_text("[researcher]\nprice_in = 1\nprice_out = 1\nmax_resend_usd = 0\n")

    def start(self):
        """Creates the job; the background worker that comes with it is the first to be killed."""
        started = self.outlast("research", "--detach", QUESTION)
        if started.returncode != 0:
            raise SystemExit(f"PROBLEM the research does not start: {started.stderr}")
        self.job = started.stdout.strip()

    def read(self, query):
        store = sqlite3.connect(f"file:{self.store}?mode=ro", uri=True)
        try:
            return store.execute(query).fetchall()
        finally:
            store.close()

    def state(self):
        return self.read("SELECT state FROM jobs")[0][0]

    def workers(self):
        mark = str(self.folder).encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    line, environment = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
                except OSError:
                    continue
                if b"worker" in line and mark in environment and b"keeper" not in line:
                    yield int(entry.name)

    def kill(self, number=signal.SIGKILL):
        """Ends its worker; true if the run was under way."""
        was_running = self.state() == "running"
        killed = 0
        for pid in self.workers():
            try:
                os.kill(pid, number)
                killed += 1
            except ProcessLookupError:
                pass
        return bool(killed and was_running)

    def asks_the_model(self):
        """True while an answer of the model is awaited."""
        free = "('read', 'search', 'decision')"
        return bool(self.read(f"SELECT 1 FROM steps WHERE state = 'sending' AND kind NOT IN {free} LIMIT 1"))

    def worker(self):
        command = [self.world.outlast, "worker", "--until-idle"]
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def fence(self):
        return self.read("SELECT coalesce(max(fence), 0) FROM steps")[0][0]

    def time_to_next_step(self, before):
        """The seconds until a new worker begins a step, or the run ends."""
        began = time.monotonic()
        while time.monotonic() - began < LIMIT:
            if self.fence() > before or self.state() not in ("running", "queued"):
                return time.monotonic() - began
            time.sleep(0.01)
        return float("inf")

    def result(self):
        shown = json.loads(self.outlast("jobs", "show", self.job, "--json").stdout)
        body = shown["output"]["body"]
        return body["text"], body["sources"]

    def sent_again(self):
        """The requests beyond the first with one body, and those that the journal knows of."""
        calls = self.world.calls()["lanes"].get(self.lane, {})
        bodies = [body for kind in ("model", "search") for body in calls.get(kind, {}).values()]
        repeated = sum(body["requests"] - 1 for body in bodies)
        return repeated, self.read("SELECT coalesce(sum(resent), 0) FROM steps WHERE kind NOT IN ('read')")[0][0]


class World:
    def __init__(self, outlast, simulator, seed):
        self.outlast, self.random = outlast, random.Random(seed)
        self.folder = Path(tempfile.mkdtemp(prefix="outlast-researcher-kills-"))
        self.simulator = subprocess.Popen([simulator], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = json.loads(self.simulator.stdout.readline())["url"]
        self.problems, self.counts, self.resumed = [], collections.Counter(), []

    def calls(self):
        with urllib.request.urlopen(f"{self.url}/__sim/calls") as answer:
            return json.load(answer)

    def undisturbed(self):
        run = Run(self, "undisturbed", 20)
        run.start()
        run.worker().wait(LIMIT)
        self.await_end(run)
        return run.result()

    def await_end(self, run):
        until = time.monotonic() + LIMIT
        while run.state() in ("running", "queued") and time.monotonic() < until:
            time.sleep(0.02)

    def disturb(self, number, kills, expected):
        """Kills the worker of a new run this many times. Returns the number of kills that hit."""
        run, hits = Run(self, f"run-{number}", 20), 0
        run.start()
        process = None
        for _ in range(kills):
            time.sleep(self.random.uniform(0.05, 2.5))
            before = run.fence()
            if not run.kill():
                break
            hits += 1
            if process:
                process.wait()
            process = run.worker()
            self.resumed.append(run.time_to_next_step(before))
        if process is None:
            process = run.worker()
        self.await_end(run)
        self.counts["runs"] += 1
        if run.state() != "succeeded":
            self.problems.append(f"run {number} is {run.state()}: {run.outlast('jobs', 'show', run.job).stdout}")
            return hits
        if run.result() != expected:
            self.problems.append(f"run {number} has another text or other sources")
        repeated, resent = run.sent_again()
        self.counts["requests sent again for a step without an answer"] += repeated
        if repeated > resent:
            self.problems.append(f"run {number}: {repeated} requests were sent again, and the journal knows of {resent}")
        process.terminate()
        process.wait()
        if not self.problems:
            shutil.rmtree(run.folder, ignore_errors=True)
        return hits

    def terminate(self, number, expected):
        """Ends the worker of a new run with SIGTERM during an answer of the model. Returns 1 if it was hit."""
        run = Run(self, f"term-{number}", 150)
        run.set_prices()
        run.start()
        wanted, hit, until = self.random.randrange(1, 9), False, time.monotonic() + LIMIT
        while run.state() in ("running", "queued") and time.monotonic() < until and not hit:
            time.sleep(0.01)
            if run.asks_the_model():
                answered = run.read("SELECT count(*) FROM steps WHERE state = 'done' AND tokens_out > 0")[0][0]
                hit = answered >= wanted and run.kill(signal.SIGTERM)
        while hit and any(run.workers()) and time.monotonic() < until:
            time.sleep(0.02)
        process = run.worker()
        self.await_end(run)
        process.wait()
        self.counts["runs"] += 1
        if run.state() != "succeeded":
            self.problems.append(f"run {number} is {run.state()}: {run.outlast('jobs', 'show', run.job).stdout}")
        elif run.result() != expected:
            self.problems.append(f"run {number} has another text or other sources")
        repeated, _ = run.sent_again()
        if repeated:
            self.problems.append(f"run {number}: {repeated} requests were sent again")
        if not self.problems:
            shutil.rmtree(run.folder, ignore_errors=True)
        return int(hit)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--outlast", required=True)
    parser.add_argument("--simulator", required=True)
    parser.add_argument("--kills", type=int, default=5000)
    parser.add_argument("--term", type=int, default=0, help="end this many workers with SIGTERM instead")
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else random.randrange(1 << 31)
    print(f"seed {seed}", flush=True)
    world = World(given.outlast, given.simulator, seed)
    try:
        expected, kills, number = world.undisturbed(), 0, 0
        while kills < given.term and not world.problems:
            number += 1
            kills += world.terminate(number, expected)
            if number % 50 == 0:
                print(f"after {kills} ends", file=sys.stderr, flush=True)
        given.kills = 0 if given.term else given.kills
        while kills < given.kills and not world.problems:
            number += 1
            kills += world.disturb(number, min(1 + world.random.randrange(6), given.kills - kills), expected)
            if number % 50 == 0:
                print(f"after {kills} kills", file=sys.stderr, flush=True)
    finally:
        world.simulator.kill()
    for name, count in sorted(world.counts.items()):
        print(f"{count:>6} {name}")
    late = sorted(world.resumed)
    if late:
        print(f"resumed after {late[len(late) // 2]:.2f} s in the middle, {late[-1]:.2f} s at most")
    for problem in world.problems[:20]:
        print(f"PROBLEM {problem}")
    if world.problems:
        print(f"the stores are kept: {world.folder}", file=sys.stderr)
        sys.exit(1)
    shutil.rmtree(world.folder, ignore_errors=True)
    if given.term:
        print(f"held: {kills} ends with SIGTERM during an answer of the model, every report the same, nothing sent again")
        return
    print(f"held: {kills} kills, every report the same, no answered request sent again")


main()
