"""Mixed load on stdio and HTTP for many minutes, with clients that leave in the middle of a call. Says how memory, descriptors and
times have changed, and fails when one of them grows.

The load: held calls, jobs started and polled, ends read again, jobs cancelled; some with a client that is gone before the answer.
"""

import argparse
import asyncio
import http.client
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOOLS = "perplexity,research-jobs"
# After this share of the time caches are full; growth is counted from there.
WARM = 0.25
# What may grow in an hour, in megabytes, and how much slower the last quarter may be than the second.
MEMORY, SLOWER = 12.0, 1.5


class Server:
    """One server of outlast and what was measured of it."""

    def __init__(self, name, command, environment):
        self.name, self.command, self.environment = name, command, environment
        self.samples, self.times, self.calls, self.left = [], [], 0, 0
        self.ended = None

    def sample(self, at):
        status = Path(f"/proc/{self.pid}/status").read_text()
        memory = int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1e3
        self.samples.append((at, memory, len(os.listdir(f"/proc/{self.pid}/fd"))))

    def timed(self, kind, at, began):
        self.calls += 1
        if kind == "read":
            self.times.append((at, (time.perf_counter() - began) * 1e3))


class Stdio(Server):
    async def start(self, log):
        self.process = await asyncio.create_subprocess_exec(
            *self.command, env=self.environment, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log, limit=1 << 26
        )
        self.pid, self.last, self.waiting = self.process.pid, 0, {}
        self.reader = asyncio.create_task(self.read())
        info = {"name": "soak", "version": "1"}
        await self.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info})
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def read(self):
        while line := await self.process.stdout.readline():
            message = json.loads(line)
            future = self.waiting.pop(message.get("id"), None) if "method" not in message else None
            if future and not future.done():
                future.set_result(message)

    def write(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    async def request(self, method, params, leave=False):
        self.last += 1
        number = self.last
        self.waiting[number] = future = asyncio.get_running_loop().create_future()
        self.write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        if leave:
            await asyncio.sleep(random.uniform(0, 0.2))
            self.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
            self.waiting.pop(number, None)
            return None
        return await future

    async def call(self, tool, arguments, leave=False):
        return await self.request("tools/call", {"name": tool, "arguments": arguments}, leave)


class Http(Server):
    async def start(self, log):
        self.process = subprocess.Popen(self.command, env=self.environment, stderr=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)", self.process.stderr.readline())):
            pass
        self.port = int(found[1])
        asyncio.get_running_loop().run_in_executor(None, lambda: [log.write(line.encode()) for line in self.process.stderr])

    def exchange(self, tool, arguments, leave):
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "soak", "version": "1"},
        }
        params = {"name": tool, "arguments": arguments, "_meta": meta}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}), headers)
            if leave:
                time.sleep(random.uniform(0, 0.2))
                return None
            text = connection.getresponse().read().decode()
            lines = [line[5:] for line in text.splitlines() if line.startswith("data:")] or [text]
            return next(message for line in lines if line.strip() and "method" not in (message := json.loads(line)))
        finally:
            connection.close()

    async def call(self, tool, arguments, leave=False):
        return await asyncio.to_thread(self.exchange, tool, arguments, leave)


def question(scenario):
    return {"messages": [{"role": "user", "content": f"Why {random.random()}? [[sim:{scenario}]]"}]}


async def caller(server, until, began):
    while time.monotonic() < until:
        kind = random.choices(["held", "job", "read", "cancel", "leave"], [3, 3, 6, 1, 2])[0]
        since, at = time.perf_counter(), time.monotonic() - began
        run = f"ok;words={random.choice([50, 600, 4500])};delay_ms={random.choice([0, 50, 2000])}"
        if kind == "held":
            answer = await server.call("perplexity_research", question(run))
            problem = "isError" in answer.get("result", {}) and answer["result"]["isError"]
        elif kind == "leave":
            await server.call("perplexity_research", question(run), leave=True)
            server.left += 1
            continue
        elif kind == "read" and server.ended:
            answer = await server.call("perplexity_research_poll", server.ended)
            problem = False
        else:
            kind = "cancel" if kind == "cancel" else "job"
            answer = await server.call("perplexity_research_start", question(run if kind == "job" else "stuck"))
            job = {"jobId": answer["result"]["structuredContent"]["jobId"]}
            tool = "perplexity_research_poll" if kind == "job" else "perplexity_research_cancel"
            answer = await server.call(tool, job)
            wanted = "COMPLETED" if kind == "job" else "CANCELLED"
            problem = answer.get("result", {}).get("structuredContent", {}).get("status") != wanted
            if kind == "job":
                server.ended = job
        if problem or "error" in answer:
            raise RuntimeError(f"{server.name}: {kind}: {json.dumps(answer)[:600]}")
        server.timed(kind, at, since)
        await asyncio.sleep(random.uniform(0, 0.1))


async def watch(servers, until, began, every):
    while time.monotonic() < until:
        for server in servers:
            server.sample(time.monotonic() - began)
        await asyncio.sleep(every)


def slope(points):
    """The growth in an hour of the line through these."""
    times, values = zip(*points)
    mean_time, mean = statistics.mean(times), statistics.mean(values)
    spread = sum((at - mean_time) ** 2 for at in times)
    return sum((at - mean_time) * (value - mean) for at, value in points) / spread * 3600 if spread else 0.0


def verdict(server, minutes):
    """A row of figures, and what is wrong."""
    warm = [sample for sample in server.samples if sample[0] >= WARM * minutes * 60]
    growth = slope([(at, memory) for at, memory, _ in warm])
    # Of a short run the line says little: what counts is what it would have added in its own time.
    added = growth * minutes / 60 * (1 - WARM)
    files = [count for _, _, count in warm]
    third = max(1, len(files) // 3)
    early, late = statistics.median(files[:third]), statistics.median(files[-third:])
    quarter = minutes * 15
    part = lambda n: [took for at, took in server.times if n * quarter <= at < (n + 1) * quarter]
    second, last = statistics.median(part(1) or [0]), statistics.median(part(3) or [0])
    problems = []
    if added > MEMORY * max(minutes / 60, 0.5):
        problems.append(f"memory grows by {growth:.1f} MB an hour")
    if late > early + 5:
        problems.append(f"descriptors grow from {early:.0f} to {late:.0f}")
    if second and last > second * SLOWER + 2:
        problems.append(f"the end of a job is read in {last:.1f} ms in the place of {second:.1f}")
    row = (
        f"{server.name}: {server.calls} calls, {server.left} clients that left; memory {warm[0][1]:.1f} to {warm[-1][1]:.1f} MB, "
        f"{growth:+.1f} MB an hour; descriptors {early:.0f} to {late:.0f}; reading an end p50 {second:.2f} to {last:.2f} ms"
    )
    return row, problems


async def run(options):
    simulator = subprocess.Popen([f"{options.outlast}-simulator", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while not (found := re.search(r"http://127\.0\.0\.1:\d+", simulator.stdout.readline())):
        pass
    folder = Path(tempfile.mkdtemp(prefix="outlast-soak-"))
    servers = []
    for store in ("SQLite", "PostgreSQL"):
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "OUTLAST_DATA_DIR": str(folder / store),
            "OUTLAST_TOOLS": TOOLS,
            "OUTLAST_LOG": "info",
            "OUTLAST_DETACH": "false",
            "OUTLAST_CONCURRENCY": "32",
            "OUTLAST_MAX_JOBS_PER_OWNER": "100000",
            "OUTLAST_OWNER": "soak",
            "PERPLEXITY_BASE_URL": found[0],
            "PERPLEXITY_API_KEY": "pplx-soak",
        }
        if store == "PostgreSQL":
            environment["OUTLAST_STORE"] = options.postgres
        servers.append(Stdio(f"stdio, {store}", [options.outlast, "serve"], environment))
        web = [options.outlast, "serve", "--http", "127.0.0.1:0", "--no-auth"]
        servers.append(Http(f"HTTP, {store}", web, environment))
    log = open(folder / "log", "ab")
    try:
        for server in servers:
            await server.start(log)
        began = time.monotonic()
        until = began + options.minutes * 60
        load = [caller(server, until, began) for server in servers for _ in range(options.callers)]
        await asyncio.gather(watch(servers, until, began, max(1, options.minutes / 5)), *load)
        problems = []
        for server in servers:
            row, found = verdict(server, options.minutes)
            print(row)
            problems += [f"PROBLEM {server.name}: {problem}" for problem in found]
        print("\n".join(problems) or f"nothing grows in {options.minutes:g} minutes of mixed load")
        return 1 if problems else 0
    finally:
        for server in servers:
            if hasattr(server, "process") and server.process.returncode is None:
                server.process.kill()
        simulator.kill()
        subprocess.run(["rm", "-rf", str(folder)], check=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--outlast", required=True)
    parser.add_argument("--postgres", required=True)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--callers", type=int, default=2, help="for each server")
    code = asyncio.run(run(parser.parse_args()))
    sys.stdout.flush()
    os._exit(code)  # threads may still wait for answers that no one sends


main()
