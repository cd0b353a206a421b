"""A Python client with short limits and a server behind `outlast wrap`: a slow tool gives its result, a time-out does not reach
the server, a person's cancel does. Every check is a line, `ok` or `FAIL`.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

HERE = Path(__file__).resolve().parent
SLOW_MS = 2400


async def eventually(what, limit=30):
    async with asyncio.timeout(limit):
        while not what():
            await asyncio.sleep(0.05)


class World:
    def __init__(self, folder, outlast, after):
        self.ledger = Path(folder) / "ledger"
        self.ledger.touch()
        environment = {"LEDGER": str(self.ledger), "OUTLAST_DATA_DIR": f"{folder}/data", "HOME": folder, "PATH": os.environ["PATH"]}
        arguments = ["wrap", "--after", after, "--idle-ms", "1000", "--", sys.executable, str(HERE / "slow_server.py")]
        self.parameters = StdioServerParameters(command=outlast, args=arguments, env=environment)

    def client(self):
        return Client(stdio_client(self.parameters, errlog=open(os.devnull, "w")), mode="legacy")

    def noted(self, what):
        return self.ledger.read_text().split("\n").count(what)


def text(result):
    return " ".join(block.text for block in result.content)


async def patient(world, tool, n):
    """Calls again with the same arguments until the result is there; how often."""
    async with world.client() as client:
        await client.list_tools()
        for calls in range(1, 50):
            result = await client.call_tool(tool, {"n": n, "ms": SLOW_MS}, read_timeout_seconds=2)
            if not result.is_error:
                break
            assert "still running" in text(result), result
    assert text(result) == f"done {n}", result
    if tool == "measured":
        assert result.structured_content == {"n": n}, result
    assert world.noted(f"start {n}") == 1, world.ledger.read_text()
    return f"{calls} calls"


async def by_id(world, n):
    """Asks for the result by the id of the job."""
    async with world.client() as client:
        handed_off = await client.call_tool("work", {"n": n, "ms": SLOW_MS})
        job = handed_off.meta["outlast/jobId"]
        for _ in range(50):
            result = await client.call_tool("get_result", {"job_id": job})
            if not result.is_error:
                break
    assert text(result) == f"done {n}", result


async def timed_out(world, n):
    """The client gives up; the server is not told, and the same call gets the result."""
    async with world.client() as client:
        try:
            await client.call_tool("work", {"n": n, "ms": SLOW_MS}, read_timeout_seconds=1)
        except Exception:  # noqa: BLE001, whatever the client raises
            pass
        else:
            raise AssertionError("the client did not give up")
        result = await client.call_tool("work", {"n": n, "ms": SLOW_MS})
    assert text(result) == f"done {n}", result
    assert world.noted(f"start {n}") == 1 and world.noted(f"cancelled {n}") == 0, world.ledger.read_text()


async def cancelled(world, n):
    """A person stops the call: the server is told."""
    async with world.client() as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "work", {"n": n, "ms": 20_000})
            await eventually(lambda: world.noted(f"start {n}"))
            group.cancel_scope.cancel()
        await eventually(lambda: world.noted(f"cancelled {n}"))


async def main(outlast):
    failed = 0
    checks = [
        ("slow tool, called again", "500ms", lambda world: patient(world, "work", 1)),
        ("slow tool with a schema", "500ms", lambda world: patient(world, "measured", 2)),
        ("slow tool, get_result", "500ms", lambda world: by_id(world, 3)),
        ("a time-out is kept back", "30s", lambda world: timed_out(world, 4)),
        ("a cancel reaches the server", "30s", lambda world: cancelled(world, 5)),
    ]
    for name, after, check in checks:
        with tempfile.TemporaryDirectory() as folder:
            try:
                async with asyncio.timeout(60):
                    said = await check(World(folder, outlast, after))
                print(f"python      {name:30} ok {said or ''}", flush=True)
            except BaseException as error:  # noqa: BLE001, every failure is a line
                failed += 1
                print(f"python      {name:30} FAIL {error!r}"[:600], flush=True)
    return failed


parser = argparse.ArgumentParser()
parser.add_argument("--outlast", required=True)
sys.exit(1 if asyncio.run(main(parser.parse_args().outlast)) else 0)
