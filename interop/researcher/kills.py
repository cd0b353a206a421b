"""Kills runs of the researcher with kill -9 at random moments, and compares what comes out (K2, K13).

What must hold, whenever its worker was killed:
- every run ends, with the same text and the same sources as an undisturbed run;
- a step that had ended when its worker was killed is never touched again, and no request is sent again but for a step
  that was open then;
- with --within SECONDS, 99 of 100 next workers begin a step within this time after their start.

With --term, workers are ended with SIGTERM while the model works on an answer that has a price. Such a worker waits for
the answer and records it, so no run ends with SUBMIT_UNKNOWN and nothing at all is sent again.

The model, the search engine and the web are the simulator's. Every run has a store of its own, and --at-once of them run
at a time. The decisions of a run depend on the seed and its number only.
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
import threading
import time
import urllib.request
from pathlib import Path

QUESTION = "How efficient are heat pumps, and what do they cost?"
LIMIT = 600
# These leave nothing open that costs anything.
FREE = "('read', 'search', 'decision')"


class Run:
    """One run of the researcher, in a store of its own."""

    def __init__(self, world, name, slow):
        self.world, self.lane = world, f"lane={name},slow={slow}"
        self.random = random.Random(f"{world.seed}/{name}")
        self.folder = world.folder / name
        self.folder.mkdir()
        self.reader, self.ended = None, {}
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
        self.reader = sqlite3.connect(f"file:{self.folder / 'outlast.db'}?mode=ro", uri=True, timeout=LIMIT)
        self.job = started.stdout.strip() or self.read("SELECT id FROM jobs")[0][0]
        if started.returncode != 0:
            # On a very busy machine the worker does not answer within ten seconds; the job is kept.
            print(f"{self.lane}: {started.stderr.splitlines()[0]}", file=sys.stderr)
            self.worker()

    def read(self, query):
        return self.reader.execute(query).fetchall()

    def state(self):
        return self.read("SELECT state FROM jobs")[0][0]

    def is_under_way(self):
        return self.state() in ("running", "queued")

    def records(self):
        """The number of records in its journal: each step has two."""
        return self.read("SELECT count(*) + count(ended_at) FROM steps")[0][0]

    def await_records(self, number):
        until = time.monotonic() + LIMIT
        while self.records() < number and self.is_under_way() and time.monotonic() < until:
            time.sleep(0.01)

    def await_end(self):
        until = time.monotonic() + LIMIT
        while self.is_under_way() and time.monotonic() < until:
            time.sleep(0.02)

    def workers(self):
        mark = f"OUTLAST_DATA_DIR={self.folder}\0".encode()
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
        return bool(self.read(f"SELECT 1 FROM steps WHERE state = 'sending' AND kind NOT IN {FREE} LIMIT 1"))

    def note_steps(self):
        """After a kill: remembers the steps that have ended, which must stay as they are. Returns the kinds of the others."""
        steps = self.read("SELECT key, kind, fence, resent, started_at, ended_at FROM steps")
        for key, _, *record in steps:
            if record[-1] is not None:
                self.ended.setdefault(key, record)
        return {kind for _, kind, *record in steps if record[-1] is None}

    def touched(self):
        """The steps that were touched after their end."""
        steps = self.read("SELECT key, fence, resent, started_at, ended_at FROM steps")
        return [key for key, *record in steps if key in self.ended and self.ended[key] != record]

    def worker(self):
        command = [self.world.outlast, "worker", "--until-idle"]
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def fence(self):
        return self.read("SELECT coalesce(max(fence), 0) FROM steps")[0][0]

    def time_to_next_step(self, before):
        """The seconds until a new worker begins a step, or the run ends."""
        began = time.monotonic()
        while time.monotonic() - began < LIMIT:
            if self.fence() > before or not self.is_under_way():
                return time.monotonic() - began
            time.sleep(0.01)
        return float("inf")

    def result(self):
        shown = json.loads(self.outlast("jobs", "show", self.job, "--json").stdout)
        body = shown["output"]["body"]
        return body["text"], body["sources"]

    def sent_again(self):
        """For each request body that was sent again: how often. For each step that was sent again: how often."""
        calls = self.world.calls(self.lane)
        bodies = [body["requests"] - 1 for kind in ("model", "search") for body in calls.get(kind, {}).values()]
        steps = [resent for (resent,) in self.read("SELECT resent FROM steps WHERE kind <> 'read'")]
        return sorted(filter(None, bodies), reverse=True), sorted(filter(None, steps), reverse=True)

    def problems(self, expected):
        """What is wrong with the run, now that it has ended."""
        if self.state() != "succeeded":
            yield f"is {self.state()}: {self.outlast('jobs', 'show', self.job).stdout}"
            return
        if self.result() != expected:
            yield "has another text or other sources"
        if touched := self.touched():
            yield f"touched steps again that had ended: {touched}"
        bodies, steps = self.sent_again()
        if len(bodies) > len(steps) or any(body > step for body, step in zip(bodies, steps)):
            yield f"requests were sent again {bodies} times, and the journal knows of {steps}"

    def remove(self):
        self.reader.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class World:
    def __init__(self, outlast, simulator, seed):
        self.outlast, self.seed = outlast, seed
        self.folder = Path(tempfile.mkdtemp(prefix="outlast-researcher-kills-"))
        self.simulator = subprocess.Popen([simulator], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = json.loads(self.simulator.stdout.readline())["url"]
        self.lock = threading.Lock()
        self.problems, self.counts, self.open, self.resumed = [], collections.Counter(), collections.Counter(), []
        self.started = self.hits = 0

    def calls(self, lane):
        with urllib.request.urlopen(f"{self.url}/__sim/calls") as answer:
            return json.load(answer)["lanes"].get(lane, {})

    def undisturbed(self):
        """The result of a run that nothing disturbs, and the number of its records."""
        run = Run(self, "undisturbed", 20)
        run.start()
        run.await_end()
        expected, records = run.result(), run.records()
        run.remove()
        return expected, records

    def disturb(self, run, expected, records):
        """Kills the worker of a run up to eight times, spread over the run. Returns the number of kills that hit."""
        kills, hits, process = 1 + run.random.randrange(8), 0, None
        run.start()
        for _ in range(kills):
            run.await_records(run.records() + run.random.randrange(2 * records // (kills + 1)))
            time.sleep(run.random.uniform(0, 0.05))
            before = run.fence()
            if not run.kill():
                break
            hits += 1
            if process:
                process.wait()
            while any(run.workers()):
                time.sleep(0.005)
            kinds = run.note_steps()
            process = run.worker()
            took = run.time_to_next_step(before)
            with self.lock:
                self.resumed.append(took)
                self.open.update(kinds or {"no step"})
        process = process or run.worker()
        run.await_end()
        process.terminate()
        process.wait()
        return hits

    def terminate(self, run, expected, records):
        """Ends the worker of a run with SIGTERM during an answer of the model. Returns 1 if it was hit."""
        run.set_prices()
        run.start()
        wanted, hit, until = run.random.randrange(1, 9), False, time.monotonic() + LIMIT
        while run.is_under_way() and time.monotonic() < until and not hit:
            time.sleep(0.01)
            if run.asks_the_model():
                answered = run.read("SELECT count(*) FROM steps WHERE state = 'done' AND tokens_out > 0")[0][0]
                hit = answered >= wanted and run.kill(signal.SIGTERM)
        while hit and any(run.workers()) and time.monotonic() < until:
            time.sleep(0.02)
        process = run.worker()
        run.await_end()
        process.wait()
        return int(hit)

    def repeat(self, wanted, disturb, name, slow, expected, records):
        """Disturbs one run after another until enough were hit or a problem was found."""
        while True:
            with self.lock:
                if self.hits >= wanted or self.problems:
                    return
                self.started += 1
                number = self.started
            run = Run(self, f"{name}-{number}", slow)
            try:
                hits = disturb(run, expected, records)
                problems = list(run.problems(expected))
                bodies, _ = run.sent_again()
                if disturb == self.terminate and bodies:
                    problems.append(f"requests were sent again: {bodies}")
            except Exception as error:  # noqa: BLE001
                hits, bodies, problems = 0, [], [f"{type(error).__name__}: {error}"]
            with self.lock:
                self.hits += hits
                self.counts["runs"] += 1
                self.counts["requests sent again for a step without an answer"] += sum(bodies)
                self.problems += [f"run {number} {problem}" for problem in problems]
                if self.counts["runs"] % 50 == 0:
                    print(f"after {self.hits} of {wanted}", file=sys.stderr, flush=True)
            if not problems:
                run.remove()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--outlast", required=True)
    parser.add_argument("--simulator", required=True)
    parser.add_argument("--kills", type=int, default=5000)
    parser.add_argument("--term", type=int, default=0, help="end this many workers with SIGTERM instead")
    parser.add_argument("--at-once", type=int, default=2 * (os.cpu_count() or 1), help="runs at a time")
    parser.add_argument("--within", type=float, default=LIMIT, help="the seconds after which a run must be resumed")
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else random.randrange(1 << 31)
    print(f"seed {seed}", flush=True)
    world = World(given.outlast, given.simulator, seed)
    try:
        expected, records = world.undisturbed()
        if given.term:
            kind = (given.term, world.terminate, "term", 150, expected, records)
        else:
            kind = (given.kills, world.disturb, "run", 20, expected, records)
        threads = [threading.Thread(target=world.repeat, args=kind) for _ in range(given.at_once)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        world.simulator.kill()
    print(f"{world.hits:>6} {'ends with SIGTERM' if given.term else 'kills'}")
    for name, count in sorted(world.counts.items()):
        print(f"{count:>6} {name}")
    for name, count in sorted(world.open.items(), key=lambda pair: -pair[1]):
        print(f"{count:>6} kills with this open: {name}")
    late = sorted(world.resumed)
    if late:
        middle, slow, most = late[len(late) // 2], late[len(late) * 99 // 100], late[-1]
        soon = sum(took <= 2 for took in late)
        print(f"resumed after {middle:.2f} s in the middle, {slow:.2f} s in 99 of 100, {most:.2f} s at most; {soon} within 2 s")
        if slow > given.within:
            world.problems.append(f"one of 100 resumes after more than {given.within} s")
    for problem in world.problems[:20]:
        print(f"PROBLEM {problem}")
    if world.problems:
        print(f"the stores are kept: {world.folder}", file=sys.stderr)
        sys.exit(1)
    shutil.rmtree(world.folder, ignore_errors=True)
    if given.term:
        print(f"held: {world.hits} ends with SIGTERM during an answer of the model, every report the same, nothing sent again")
        return
    print(f"held: {world.hits} kills, every report the same, no answered request sent again")


main()
