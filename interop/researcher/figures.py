"""Measures the researcher: runs that end well with a broken model, reports of a model that invents, many runs at once.

Each part runs questions of its own in one store, with the worker that the first of them starts. The model, the search engine and the web are the
simulator's, so a part takes the same decisions every time.
"""

import argparse
import collections
import concurrent.futures
import fcntl
import json
import os
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

TOPICS = ["heat pumps", "wind turbines", "solar panels", "batteries", "electric ferries", "night trains", "tidal power"]
ASPECTS = ["How efficient are {}?", "What do {} cost?", "How have {} developed?", "What limits {}?", "Who builds {}?"]
# Five kinds of faults that together spoil 30 of 100 answers, and thinking in a fifth of them.
BROKEN = "broken=7,refuse=7,empty=7,loop=7,length=7,think=20"


def question(number):
    """A question of its own for each run: the faults of the model depend on the request."""
    topic, aspect = TOPICS[number % len(TOPICS)], ASPECTS[number // len(TOPICS) % len(ASPECTS)]
    return f"{aspect.format(topic)} (part {number})"


class World:
    def __init__(self, outlast, simulator, lane, at_once):
        self.outlast = outlast
        self.folder = Path(tempfile.mkdtemp(prefix="outlast-researcher-figures-"))
        self.simulator = subprocess.Popen([simulator], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        url = self.url = json.loads(self.simulator.stdout.readline())["url"]
        configuration = self.folder / ".config" / "outlast"
        configuration.mkdir(parents=True)
        limits = f"[server]\nconcurrency = {at_once}\n[limits]\nmax_jobs_per_owner = 10000\n"
        (configuration / "outlast.toml").write_text(f"{limits}[researcher]\nparallel = {min(at_once, 64)}\n")
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "OUTLAST_DATA_DIR": str(self.folder / "data"),
            "OUTLAST_PROVIDERS": "researcher",
            "OUTLAST_MODEL_URL": f"{url}/llm/{lane}/v1",
            "OUTLAST_MODEL": "scripted",
            "OUTLAST_SEARCH_URL": f"{url}/searxng/-",
            "OUTLAST_CITATIONS_ALLOW_PRIVATE": "true",
            "OUTLAST_DETACH": "false",
            "NO_PROXY": "*",
        }

    def run(self, *arguments):
        return subprocess.run([self.outlast, *arguments], env=self.environment, capture_output=True, text=True)

    def ask(self, number):
        started = self.run("research", "--detach", "--effort", "low", question(number))
        if started.returncode != 0:
            raise SystemExit(f"PROBLEM the research does not start: {started.stderr}")
        return started.stdout.strip()

    def ask_all(self, runs):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            return list(pool.map(self.ask, range(runs)))

    def workers(self):
        """The processes of this store, and of no other."""
        mark = str(self.folder).encode()
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                    yield entry
            except OSError:
                pass

    def await_end(self):
        """Waits until all jobs have ended. Returns the seconds, the largest memory of a worker in MB, and the seconds
        of processor time that the workers have used."""
        began, memory, busy = time.monotonic(), 0.0, {}
        while any(self.states()[0].get(state) for state in ("queued", "running")):
            for entry in self.workers():
                try:
                    status = (entry / "status").read_text()
                    memory = max(memory, int(status.split("VmHWM:")[1].split()[0]) / 1024)
                    fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                    busy[entry.name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
                except (OSError, IndexError):
                    pass
            time.sleep(0.5)
        return time.monotonic() - began, memory, sum(busy.values())

    def states(self):
        store = sqlite3.connect(f"file:{self.folder / 'data' / 'outlast.db'}?mode=ro", uri=True)
        states = dict(store.execute("SELECT state, count(*) FROM jobs GROUP BY state"))
        steps = store.execute("SELECT count(*) FROM steps").fetchone()[0]
        store.close()
        return states, steps

    def end_workers(self):
        for entry in self.workers():
            try:
                os.kill(int(entry.name), signal.SIGTERM)
            except OSError:
                pass

    def close(self):
        self.end_workers()
        self.simulator.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def broken(make, runs):
    """K6: at least 95 % of the runs end well although 30 % of the answers are spoilt."""
    world = make(BROKEN, 4)
    try:
        world.ask_all(runs)
        seconds, _, _ = world.await_end()
        states, _ = world.states()
        well = states.get("succeeded", 0)
        print(f"broken: {well} of {runs} runs ended well ({100 * well / runs:.1f} %) in {seconds:.0f} s: {states}")
        return well >= 0.95 * runs
    finally:
        world.close()


def invented(make, runs):
    """K7: no cited sentence differs from its page or is missing in it, although the model invents quotations."""
    world = make("invent=20", 4)
    try:
        jobs = world.ask_all(runs)
        world.await_end()
        totals, unreadable = collections.Counter(), 0
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for checked in pool.map(lambda job: world.run("check", job, "--json"), jobs):
                try:
                    totals.update(json.loads(checked.stdout)["totals"])
                except (ValueError, KeyError, TypeError):
                    unreadable += 1
        shown = ", ".join(f"{name} {count}" for name, count in sorted(totals.items()) if count)
        print(f"invented: {runs} reports, {unreadable} without a check: {shown}")
        return unreadable == 0 and totals["not_found"] == 0 and totals["differs"] == 0
    finally:
        world.close()


def many(make, runs):
    """K13: many runs at once in one worker: time and memory."""
    world = make("-", runs)
    try:
        world.ask_all(runs)
        seconds, memory, busy = world.await_end()
        states, steps = world.states()
        print(f"many: {runs} runs at once, {steps} steps: {seconds:.0f} s, {busy:.0f} s of processor time, {memory:.0f} MB: {states}")
        return states == {"succeeded": runs}
    finally:
        world.close()


def alone(make, runs):
    """K9: with a model and documents on this machine a run needs nothing else: it works in a network namespace that
    has only loopback, and asks the model alone."""
    inside = os.environ.get("OUTLAST_FIGURES_ALONE")
    if not inside:
        environment = {**os.environ, "OUTLAST_FIGURES_ALONE": "1"}
        began = subprocess.run(["unshare", "-rn", "true"], capture_output=True)
        if began.returncode != 0:
            print("alone: network namespaces are not permitted here; not checked")
            return True
        return subprocess.run(["unshare", "-rn", sys.executable, "-B", *sys.argv], env=environment).returncode == 0
    raise_loopback()
    try:
        socket.create_connection(("192.0.2.1", 80), timeout=1)
        raise SystemExit("PROBLEM the namespace has a network")
    except OSError as error:
        print(f"alone: other machines: {error}")
    world = make("-", 4)
    try:
        documents = world.folder / "documents"
        documents.mkdir()
        for number, topic in enumerate(TOPICS):
            text = f"# How {topic} have developed\n\nIn 2023 the town of Arlen counted {1200 + number} {topic}.\n"
            (documents / f"{number}.md").write_text(text)
        world.environment |= {"OUTLAST_SEARCH": "library", "OUTLAST_LIBRARY": str(documents)}
        for number in range(runs):
            asked = world.run("research", "--effort", "low", f"How have {TOPICS[number % len(TOPICS)]} developed?")
            if asked.returncode != 0 or "[1]" not in asked.stdout:
                print(f"PROBLEM run {number}: {asked.stdout}{asked.stderr}")
                return False
        with urllib.request.urlopen(f"{world.url}/__sim/calls") as answer:
            calls = json.load(answer)
        searched = sum(len(lane["search"]) for lane in calls["lanes"].values())
        others = len(calls["pages"]) + len(calls["strays"]) + searched
        print(f"alone: {runs} runs over documents with loopback only; requests to anything but the model: {others}")
        return others == 0
    finally:
        world.close()


def raise_loopback():
    """Does what `ip link set lo up` does, which is not installed everywhere."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh", b"lo", 0x1 | 0x40)  # IFF_UP and IFF_RUNNING
        fcntl.ioctl(control, 0x8914, request.ljust(40, b"\0"))  # SIOCSIFFLAGS


PARTS = {"alone": (alone, 3), "broken": (broken, 200), "invented": (invented, 200), "many": (many, 1000)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--outlast", required=True)
    parser.add_argument("--simulator", required=True)
    parser.add_argument("--runs", type=int, default=None)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    given = parser.parse_args()
    held = True
    for name in given.parts or PARTS:
        part, runs = PARTS[name]

        def make(lane, at_once):
            return World(given.outlast, given.simulator, lane, at_once)

        if not part(make, given.runs or runs):
            print(f"PROBLEM {name} does not hold")
            held = False
    sys.exit(0 if held else 1)


main()
