"""Kills scripts with durable steps, their workers and their servers with kill -9 at random moments (K12).

What must hold, whatever was killed:
- a step that is recorded as done never runs again, and every later run prints the same output;
- a step without --rerun whose end is unknown runs again only after a decision: `outlast step resolve JOB NAME --rerun`
  or `outlast jobs retry JOB --again`;
- no step runs more often than its journal states, and every script comes to its end.

Each step writes into a file of events when it begins and when it ends. Every script has a store of its own, and several are
disturbed at the same time.
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
from pathlib import Path

LIMIT = 300
STEPS = [str(number) for number in range(1, 7)]
RERUN = {"2", "5"}

CONFIGURATION = """
[[workflow]]
name = "script"
command = ["/bin/sh", "./script.sh"]
steps = true
env = {{ PATH = "{path}" }}
"""
SCRIPT = """
set -e
for step in {steps}; do
  rerun=
  case $step in {rerun}) rerun=--rerun ;; esac
  text=$(outlast step "$step" $rerun -- sh ./effect.sh "$step")
  echo "printed $step $text" >> events
  echo "$step $text"
done
"""
EFFECT = """
echo "begin $1" >> events
sleep 0.05
echo "end $1" >> events
echo "$$-$(date +%s%N)"
"""


class Chain:
    """A job and its retries, in a store of their own."""

    def __init__(self, world, number):
        self.world, self.random = world, random.Random(f"{world.seed}-{number}")
        self.counts, self.problems = collections.Counter(), []
        self.folder = world.folder / f"chain-{number}"
        self.folder.mkdir()
        path = f"{Path(world.outlast).parent}:{os.environ['PATH']}"
        (self.folder / "outlast.toml").write_text(CONFIGURATION.format(path=path))
        script = SCRIPT.format(steps=" ".join(STEPS), rerun="|".join(sorted(RERUN)))
        (self.folder / "script.sh").write_text(script)
        (self.folder / "effect.sh").write_text(EFFECT)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "OUTLAST_DATA_DIR": str(self.folder),
            "OUTLAST_TEST_WORKER_IDLE_MS": "500",
        }
        self.decisions, self.declared = collections.Counter(), set()
        # The number of runs of each step at the moment when it was first seen to be done.
        self.done = {}
        self.children = []

    def outlast(self, *arguments, may_fail=False):
        command = [self.world.outlast, "--config", str(self.folder / "outlast.toml"), *arguments]
        ran = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=LIMIT)
        if ran.returncode != 0 and not may_fail:
            raise RuntimeError(f"`outlast {' '.join(arguments)}`: {ran.stderr}")
        return ran

    def begin(self):
        started = self.outlast("run", "script", "--detach", may_fail=True)
        # A busy machine may start no background worker in time; another one runs the job.
        if started.returncode != 0 and "the job is kept" not in started.stderr:
            raise RuntimeError(f"the script does not start: {started.stderr}")
        self.job = self.read("SELECT id FROM jobs")[0][0]

    def read(self, query, *values):
        store = sqlite3.connect(f"file:{self.folder / 'outlast.db'}?mode=ro", uri=True, timeout=10)
        try:
            return store.execute(query, values).fetchall()
        finally:
            store.close()

    def state(self):
        return self.read("SELECT state FROM jobs WHERE id = ?", self.job)[0][0]

    def steps(self):
        """The tries of steps by name: (state, fence, times sent again)."""
        rows = self.read("SELECT key, state, fence, resent FROM steps WHERE kind = 'command'")
        tries = collections.defaultdict(list)
        for key, state, fence, resent in rows:
            tries[key.partition("#")[0]].append((state, fence, resent))
        return tries

    def interrupted(self):
        return {name for name, tries in self.steps().items() if any(state == "sending" and fence for state, fence, _ in tries)}

    def events(self):
        path = self.folder / "events"
        return [line.split(" ") for line in path.read_text().splitlines()] if path.exists() else []

    def runs(self):
        return collections.Counter(event[1] for event in self.events() if event[0] == "begin")

    def processes(self):
        """Its processes by kind."""
        mark, found = str(self.folder).encode(), collections.defaultdict(list)
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                line, environment = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
            except OSError:
                continue
            words = line.split(b"\0")
            if mark not in environment:
                continue
            if b"./script.sh" in words and b"launch" not in words:
                found["script"].append(int(entry.name))
            elif b"./effect.sh" in words and b"step" not in words:
                found["effect"].append(int(entry.name))
            elif b"step" in words:
                found["step"].append(int(entry.name))
            elif b"worker" in words or b"serve" in words:
                found["worker"].append(int(entry.name))
        return found

    def work(self):
        """Starts a process that runs its job."""
        how = self.random.choice(["worker", "serve"])
        arguments = ["worker", "--until-idle"] if how == "worker" else ["serve", "--no-detach", "--tools", "jobs"]
        command = [self.world.outlast, "--config", str(self.folder / "outlast.toml"), *arguments]
        self.children.append(subprocess.Popen(
            command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ))
        return how

    def reap(self):
        self.children = [child for child in self.children if child.poll() is None]

    def kill(self):
        """Kills one kind of process after a while; returns the kind, or None if there was nothing to kill."""
        time.sleep(self.random.uniform(0, 0.7))
        found = self.processes()
        kinds = [kind for kind in ("worker", "worker", "script", "step", "effect") if found[kind]]
        if not kinds:
            return None
        kind, killed = self.random.choice(kinds), False
        for pid in found[kind]:
            try:
                os.kill(pid, signal.SIGKILL)
                killed = True
            except ProcessLookupError:
                pass
        if not killed:
            return None
        for name, tries in self.steps().items():
            if any(state == "done" for state, _, _ in tries):
                self.done.setdefault(name, self.runs()[name])
        return kind

    def decide(self):
        """Starts the failed job again, with a decision for each interrupted step or without."""
        again = []
        for name in sorted(self.interrupted()):
            decision = self.random.choice(["--done", "--rerun", "--again", "none"])
            self.counts[f"interrupted steps: {decision}"] += 1
            if decision in ("--done", "--rerun"):
                self.outlast("step", "resolve", self.job, name, decision)
            if decision == "--done":
                self.declared.add(name)
                self.done.setdefault(name, self.runs()[name])
            elif decision == "--rerun":
                self.decisions[name] += 1
            elif decision == "--again":
                again = ["--again"]
        if again:
            self.decisions.update(self.interrupted())
        retried = self.outlast("jobs", "retry", self.job, "--json", *again)
        self.job = json.loads(retried.stdout)["id"]

    def wait(self, seconds):
        """Waits until its job has ended."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            state = self.state()
            if state not in ("running", "queued"):
                return state
            time.sleep(0.02)
        return self.state()

    def finish(self):
        """Runs it to its end, with a decision for each step that is left."""
        until = time.monotonic() + LIMIT
        while time.monotonic() < until:
            self.reap()
            if not self.processes()["worker"]:
                self.work()
            state = self.wait(5)
            if state == "succeeded":
                return
            if state == "failed":
                self.decide()
        self.problem(f"is {self.state()} after {LIMIT} s")

    def problem(self, why):
        self.problems.append(f"{self.folder}: {why}")

    def check(self):
        runs, tries = self.runs(), self.steps()
        printed = {}
        for kind, name, *text in self.events():
            if kind == "printed":
                if printed.setdefault(name, text) != text:
                    self.problem(f"step {name} printed another output: {printed[name]}, then {text}")
            elif kind == "begin" and name in printed:
                self.problem(f"step {name} ran again after its output was printed")
        for name in STEPS:
            resent = sum(again for _, _, again in tries[name])
            if runs[name] > len(tries[name]) + resent:
                self.problem(f"step {name} ran {runs[name]} times; the journal knows of {len(tries[name]) + resent}")
            if name not in RERUN and resent > self.decisions[name]:
                self.problem(f"step {name} was begun again {resent} times, after {self.decisions[name]} decisions")
            if name in self.done and runs[name] != self.done[name]:
                self.problem(f"step {name} was done after {self.done[name]} runs, and ran {runs[name]} times")
            if not any(state == "done" for state, _, _ in tries[name]):
                self.problem(f"step {name} is not done")
            if (printed.get(name) == [""]) != (name in self.declared):
                self.problem(f"step {name} printed {printed.get(name)}; declared done: {name in self.declared}")
        shown = json.loads(self.outlast("jobs", "show", self.job, "--json").stdout)
        expected = "".join(f"{name} {' '.join(printed[name])}\n" for name in STEPS if name in printed)
        output = "".join(part["text"] for part in shown["output"]["body"]["content"])
        if output != expected:
            self.problem(f"the job has the output {output!r}, not {expected!r}")

    def end(self):
        for child in self.children:
            child.kill()
            child.wait()
        for pid in self.processes()["worker"]:
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                pass


class World:
    def __init__(self, outlast, seed):
        self.outlast, self.seed = outlast, seed
        self.folder = Path(tempfile.mkdtemp(prefix="outlast-step-kills-"))

    def disturb(self, number, left):
        """Kills processes of a new chain a few times, at most `left`. Returns the chain and the number of kills that hit."""
        chain, hits = Chain(self, number), 0
        kills = min(1 + chain.random.randrange(6), left)
        try:
            chain.begin()
            for _ in range(2 * kills):
                kind = chain.kill()
                if kind:
                    hits += 1
                    chain.counts[f"kills of a {kind}"] += 1
                chain.reap()
                state = chain.wait(0) if kind in (None, "worker") else chain.wait(2)
                if state == "succeeded" or hits == kills:
                    break
                if state == "failed":
                    chain.decide()
                if not chain.processes()["worker"]:
                    chain.counts[f"started with `{chain.work()}`"] += 1
            chain.finish()
            chain.check()
        except Exception as error:  # noqa: BLE001, the other chains go on
            chain.problem(f"{type(error).__name__}: {error}")
        finally:
            chain.end()
        chain.counts["scripts"] += 1
        if not chain.problems:
            shutil.rmtree(chain.folder, ignore_errors=True)
        return chain, hits


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--outlast", required=True)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--parallel", type=int, default=4)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else random.randrange(1 << 31)
    print(f"seed {seed}", flush=True)
    world = World(str(Path(given.outlast).resolve()), seed)
    numbers, lock = iter(range(1, 1 << 31)), threading.Lock()
    counts, problems, kills = collections.Counter(), [], 0

    def disturb():
        nonlocal kills
        while True:
            with lock:
                left, number = given.kills - kills, next(numbers)
            if left <= 0 or problems:
                return
            chain, hits = world.disturb(number, left)
            with lock:
                kills += hits
                counts.update(chain.counts)
                problems.extend(chain.problems)
                if number % 50 == 0:
                    print(f"after {kills} kills", file=sys.stderr, flush=True)

    threads = [threading.Thread(target=disturb) for _ in range(given.parallel)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, count in sorted(counts.items()):
        print(f"{count:>6} {name}")
    for problem in problems[:20]:
        print(f"PROBLEM {problem}")
    if problems:
        print(f"the stores are kept: {world.folder}", file=sys.stderr)
        sys.exit(1)
    shutil.rmtree(world.folder, ignore_errors=True)
    print(f"held: {kills} kills, no finished step ran again, and no interrupted one without a decision")


main()
