"""Measures outlast beside its peers in one run and writes what came of it: docs/project/benchmarks.md, docs/project/benchmarks.svg and the table in README.md."""

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import document
import work
from contenders import all_of


class Simulator:
    """The provider, and what is asked of it from outside."""

    def __init__(self, outlast):
        self.process = subprocess.Popen([f"{outlast}-simulator", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while not (found := re.search(r"http://127\.0\.0\.1:\d+", self.process.stdout.readline())):
            pass
        self.url = found[0]

    async def ask(self, path, body=None):
        def send():
            request = urllib.request.Request(f"{self.url}/__sim/{path}", data=body)
            with urllib.request.urlopen(request) as answer:
                return answer.read()

        return await asyncio.to_thread(send)

    async def submits(self):
        return json.loads(await self.ask("stats"))["submits"]

    async def release(self):
        await self.ask("release", b"")

    async def reset(self):
        await self.ask("reset", b"")


async def measure(options, simulator):
    all_ = all_of(options.outlast, options.peers, simulator.url, options.redis, options.postgres)
    figures = {name: {} for name in all_}

    def add(found):
        for name, values in found.items():
            figures[name].update(values)

    async def step(title, awaitable):
        print(title, file=sys.stderr, flush=True)
        found = await awaitable
        await simulator.reset()
        return found

    def of(*names):
        return [all_[name] for name in names]

    small = options.short
    blocking = of("outlast", "outlast, one process", "vendor's server", "bare SDK", "FastMCP")
    tasks = of("FastMCP tasks", "FastMCP tasks, Redis")
    add(await step("cold start", work.cold_start([*blocking, *tasks], 2 if small else 15)))
    add(await step("memory", work.memory([*blocking, *tasks], 5 if small else 100)))
    for stream in work.STREAMS:
        add(await step(f"calls, {stream}", work.calls(blocking, 1 if small else 10, 5 if small else 30, stream)))
        add(await step(f"32 callers, {stream}", work.callers(blocking, 32, 1 if small else 10, 1 if small else 3, stream)))
    for one in of("outlast", "outlast, one process", "outlast, PostgreSQL"):
        add({one.name: await step(f"wake-up: {one.name}", work.wake_up(one, simulator, 3 if small else 100))})
    for one in of("outlast", "outlast, PostgreSQL"):
        found = await step(f"wake-up in another process: {one.name}", work.wake_up(one, simulator, 3 if small else 50, other=True))
        add({one.name: {"wake_other": found["wake"]}})
    for one in tasks:
        add({one.name: await step(f"wake-up: {one.name}", work.wake_up(one, simulator, 2 if small else 20))})
        found = await step(f"wake-up, asked every 50 ms: {one.name}", work.wake_up(one, simulator, 2 if small else 50, pause=0.05))
        add({one.name: {"wake_often": found["wake"]}})
    for one in [*blocking, *tasks, *of("outlast, PostgreSQL")]:
        add({one.name: await step(f"many jobs: {one.name}", work.storm(one, 50 if small else 1_000, 5))})
        add({one.name: await step(f"SIGKILL: {one.name}", work.killed(one, simulator, 20, 8))})
        add({one.name: await step(f"cap of 3 s: {one.name}", work.capped(one, simulator, 3, 6))})
    for one in all_.values():
        figures[one.name]["size"] = document.megabytes(one.installed)
    return figures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--outlast", required=True)
    parser.add_argument("--peers", type=Path, required=True)
    parser.add_argument("--redis", required=True)
    parser.add_argument("--postgres", required=True)
    parser.add_argument("--queues", type=Path, help="the tables that outlast-bench-store printed")
    parser.add_argument("--docs", type=Path, help="where benchmarks.md and benchmarks.svg go; without it the table is printed")
    parser.add_argument("--readme", type=Path)
    parser.add_argument("--short", action="store_true", help="few rounds, to show that the measuring works")
    options = parser.parse_args()
    tempfile.tempdir = None
    simulator = Simulator(options.outlast)
    try:
        figures = asyncio.run(measure(options, simulator))
    finally:
        simulator.process.kill()
    queues = options.queues.read_text() if options.queues else ""
    document.write(figures, queues, options.docs, options.readme)


main()
