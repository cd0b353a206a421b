"""An MCP client on a pipe that many callers share, and what the processes behind it use of the machine."""

import asyncio
import json
import os
import re
import time
from pathlib import Path

ID_FIRST = re.compile(rb'^\{"jsonrpc":"2\.0","id":(\d+)[,}]')
ID_LAST = re.compile(rb'"id":(\d+)\}\s*$')
NOTICE = re.compile(rb'^\{(?:"jsonrpc":"2\.0",)?"method"')
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
MARK = "BENCH_PEER"
TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


class Gone(Exception):
    """The server ended before it answered."""


class Client:
    """Greets a server on start. Answers are bytes: who wants to know what is inside takes them apart."""

    def __init__(self, contender):
        self.contender = contender
        self.waiting = {}
        self.last_id = 0
        self.heard = lambda: None

    async def start(self):
        self.mark = f"{MARK}={self.contender.folder}"
        environment = {**self.contender.environment, MARK: self.contender.folder}
        self.log = open(Path(self.contender.folder) / "log", "ab")
        self.process = await asyncio.create_subprocess_exec(
            *self.contender.command,
            env=environment,
            cwd=self.contender.folder,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=self.log,
            limit=1 << 26,
        )
        self.reader = asyncio.create_task(self.read())
        if self.contender.modern:
            await self.request("server/discover", {})
        else:
            info = {"name": "bench", "version": "1"}
            await self.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info})
            self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    async def read(self):
        while line := await self.process.stdout.readline():
            found = ID_FIRST.search(line[:64]) or (None if NOTICE.match(line) else ID_LAST.search(line[-48:]))
            if found is None:
                self.heard()
            elif future := self.waiting.pop(int(found[1]), None):
                if not future.done():
                    future.set_result(line)
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(Gone(f"{self.contender.name}: {self.said()}"))
        self.waiting.clear()

    def said(self):
        """The last that it wrote to its log."""
        return (Path(self.contender.folder) / "log").read_bytes()[-400:].decode(errors="replace")

    def write(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    def send(self, method, params):
        self.last_id += 1
        meta = {"progressToken": self.last_id}
        if self.contender.modern:
            meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28"
            meta["io.modelcontextprotocol/clientCapabilities"] = TASKS
            meta["io.modelcontextprotocol/clientInfo"] = {"name": "bench", "version": "1"}
        self.waiting[self.last_id] = future = asyncio.get_running_loop().create_future()
        self.write({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": {**params, "_meta": meta}})
        return self.last_id, future

    async def request(self, method, params):
        return await self.send(method, params)[1]

    async def call(self, tool, arguments):
        """The answer to a call that must go well."""
        answer = await self.request("tools/call", {"name": tool, "arguments": arguments})
        if b'"isError":true' in answer or b'"error":{"code"' in answer:
            raise RuntimeError(f"{self.contender.name}: {answer[:600]!r}")
        return answer

    async def research(self, scenario):
        """A call that is answered with the report."""
        answer = await self.call(self.contender.tool, self.contender.question(scenario))
        if len(answer) < 1_000:
            raise RuntimeError(f"{self.contender.name} answered without a report: {answer[:600]!r}")
        return answer

    async def begin(self, scenario):
        """Starts a job and returns what it is asked for with."""
        if self.contender.jobs == "poll":
            answer = json.loads(await self.call("perplexity_research_start", self.contender.question(scenario)))
            return answer["result"]["structuredContent"]["jobId"], None
        answer = json.loads(await self.call(self.contender.tool, self.contender.question(scenario)))
        return answer["result"]["taskId"], answer["result"]["pollIntervalMs"] / 1_000

    async def end(self, job, pause=None):
        """Waits for a job's end as the server wants it to be done; true when it has a result."""
        name, interval = job
        while True:
            if self.contender.jobs == "poll":
                arguments = {"name": "perplexity_research_poll", "arguments": {"jobId": name}}
                answer = json.loads(await self.request("tools/call", arguments))
                status = answer.get("result", {}).get("structuredContent", {}).get("status", "")
                if status in ("COMPLETED", "FAILED", "CANCELLED"):
                    return status == "COMPLETED"
                if "error" in answer or answer["result"].get("isError"):
                    return False
            else:
                answer = json.loads(await self.request("tasks/get", {"taskId": name}))
                status = answer.get("result", {}).get("status")
                if status == "completed":
                    return not answer["result"]["result"].get("isError")
                if status != "working":
                    return False
                await asyncio.sleep(pause or interval)

    async def close(self):
        self.process.stdin.close()
        try:
            await asyncio.wait_for(self.process.wait(), 10)
        except TimeoutError:
            await self.kill()
        await self.reader
        for pid in self.pids():
            os.kill(pid, 15)
        self.log.close()

    async def kill(self):
        for pid in self.pids():
            os.kill(pid, 9)
        await self.process.wait()

    def pids(self):
        """The server and whatever it started, also what has left it."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:
                pass
        return found

    def cpu(self):
        """Seconds of processor time so far."""
        total = 0
        for pid in self.pids():
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            total += sum(int(fields[n]) for n in (11, 12, 13, 14))
        return total / TICKS

    def memory(self, name="VmRSS"):
        """Megabytes; `VmHWM` is the most there ever was."""
        total = 0
        for pid in self.pids():
            found = re.search(rf"{name}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
            total += int(found[1])
        return total / 1e3


async def timed(awaitable):
    began = time.perf_counter()
    await awaitable
    return (time.perf_counter() - began) * 1e3
