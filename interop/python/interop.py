"""One Python client against one outlast: every check is one line, `ok` or `FAIL` with what was wrong.

Servers: over stdio this starts its own; over HTTP it is told where they are. What the client logs or warns is a failure.
"""

import argparse
import asyncio
import contextlib
import logging
import os
import sys
import tempfile
import time
import traceback
import warnings

import anyio
from jsonschema import Draft202012Validator
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

from tasks import Ended, Tasks, task

TOOLS = {
    "perplexity_deep_research", "perplexity_deep_research_followup", "perplexity_search", "perplexity_search_followup",
    "cancel_research", "get_conversation_history", "get_conversation_histories", "list_conversations", "search_research",
    "check_citations",
    "perplexity_research_start", "perplexity_research_poll", "perplexity_research_cancel",
    "perplexity_ask", "perplexity_reason", "perplexity_research",
}  # fmt: skip
MODES = {"legacy": "legacy", "auto": "auto", "2026-07-28": "2026-07-28"}
VERSIONS = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}


def sim(words: str, marker: str) -> str:
    return f"{words} [[sim:{marker}]]"


class Heard(logging.Handler):
    """Everything the client logged or warned of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[str] = []
        self.late_answers = False

    def emit(self, record: logging.LogRecord) -> None:
        # In the old era a call is given up by a message of its own, which another server than the call's may get. That one cannot
        # end the call, and its answer may come when the client is closed.
        closed = (anyio.BrokenResourceError, anyio.ClosedResourceError)
        if self.late_answers and record.exc_info and isinstance(record.exc_info[1], closed):
            return
        reason = f": {record.exc_info[1]!r}" if record.exc_info else ""
        self.records.append(f"{record.name}: {record.getMessage()}{reason}")


class Run:
    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.modern = VERSIONS[given.era] == "2026-07-28"
        self.nonce = f"{given.transport}-{given.era}-{os.getpid()}"
        self.failed = 0
        self.conversation = ""

    def row(self, check: str, problem: str = "") -> None:
        self.failed += bool(problem)
        cells = ["python", self.given.transport, self.given.era, check, f"FAIL {problem}" if problem else "ok"]
        print("\t".join(cells), flush=True)

    async def check(self, name: str, doing) -> None:
        try:
            async with asyncio.timeout(60):
                await doing
            self.row(name)
        except Exception as error:  # noqa: BLE001, every failure is a row
            where = traceback.extract_tb(error.__traceback__)[-1]
            self.row(name, f"{type(error).__name__} at line {where.lineno}: {error}"[:300].replace("\n", " "))

    @contextlib.asynccontextmanager
    async def client(self, server: str = "blocking", **options):
        """A connected client of one of the two servers: the one that holds calls, or the one that queues them."""
        async with contextlib.AsyncExitStack() as stack:
            if self.given.transport == "http":
                url = self.given.url if server == "blocking" else self.given.queued_url
                http = await stack.enter_async_context(
                    create_mcp_http_client(headers={"Authorization": f"Bearer {self.given.token}"})
                )
                transport = streamable_http_client(url, http_client=http)
            else:
                data = stack.enter_context(tempfile.TemporaryDirectory())
                log = stack.enter_context(open(os.path.join(data, "log"), "w"))
                queued = "true" if server == "queued" else "false"
                environment = {name: value for name, value in os.environ.items() if name.startswith("PERPLEXITY_")}
                environment |= {"OUTLAST_DATA_DIR": data, "OUTLAST_TOOLS": "research,research-jobs,perplexity"}
                environment["PERPLEXITY_ENABLE_ASYNC_DEEP_RESEARCH"] = queued
                command = StdioServerParameters(command=self.given.outlast, args=["serve"], env=environment)
                transport = stdio_client(command, errlog=log)
            yield await stack.enter_async_context(Client(transport, mode=MODES[self.given.era], **options))

    async def all(self) -> None:
        async with self.client() as client:
            await self.check("connect", self.connect(client))
            await self.check("list", self.list(client))
            await self.check("blocking call with progress", self.blocking(client))
            await self.check("history", self.history(client))
            await self.check("start, poll, cancel", self.jobs(client))
            await self.check("search and ask", self.quick(client))
            await self.check("errors", self.errors(client))
            await self.check("give up, call again", self.again(client))
        async with self.client("queued") as client:
            await self.check("queued, awaited", self.queued(client))
        tasks = Tasks()
        async with self.client(extensions=[tasks]) as client:
            await self.check("task" if self.modern else "no task in this era", self.task(client, tasks))

    async def connect(self, client: Client) -> None:
        version = client.protocol_version
        assert version == VERSIONS[self.given.era], version
        if self.given.era == "2026-07-28":
            return  # a pinned version asks the server nothing
        assert client.server_info.name == "outlast", client.server_info
        assert "durable" in client.instructions
        extensions = client.server_capabilities.extensions or {}
        assert ("io.modelcontextprotocol/tasks" in extensions) == self.modern, extensions

    async def list(self, client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == TOOLS, set(tools) ^ TOOLS
        for tool in tools.values():
            assert tool.title and tool.description and tool.annotations, tool.name
            for schema in (tool.input_schema, tool.output_schema):
                Draft202012Validator.check_schema(schema)
                assert schema["type"] == "object" and "'format'" not in str(schema), tool.name

    async def blocking(self, client: Client) -> None:
        told: list[tuple[float, str]] = []

        async def progress(value: float, total: float | None, message: str | None) -> None:
            assert total in (100, None)
            told.append((value, message or ""))

        query = sim(f"What is in a grain of sand, {self.nonce}?", "ok;words=200;delay_ms=3000")
        answer = await client.call_tool(
            "perplexity_deep_research", {"query": query, "reasoning_effort": "low"}, progress_callback=progress
        )
        assert not answer.is_error, answer.content
        shape = answer.structured_content
        assert shape["status"] == "completed" and shape["usage"]["total_tokens"] > 0, shape
        assert any(shape["rawResultText"] in block.text for block in answer.content)
        values = [value for value, _ in told]
        assert len(values) >= 2 and values == sorted(set(values)), told
        self.conversation = shape["conversationId"]

    async def history(self, client: Client) -> None:
        history = await client.call_tool("get_conversation_history", {"conversationId": self.conversation})
        shape = history.structured_content
        assert [message["role"] for message in shape["messages"]] == ["user", "assistant"], shape
        several = await client.call_tool("get_conversation_histories", {"conversationIds": [self.conversation]})
        assert not several.is_error, several.content
        followed = {"conversationId": self.conversation, "query": sim("And then?", "ok;words=50;delay_ms=0")}
        follow = await client.call_tool("perplexity_search_followup", followed)
        assert follow.structured_content["conversationId"] == self.conversation, follow
        listed = await client.call_tool("list_conversations", {"limit": 5})
        found = {one["conversationId"]: one for one in listed.structured_content["conversations"]}
        assert found[self.conversation]["messageCount"] == 4, found

    async def jobs(self, client: Client) -> None:
        async def start(marker: str) -> str:
            messages = [{"role": "user", "content": sim(f"A job, {self.nonce}", marker)}]
            started = await client.call_tool("perplexity_research_start", {"messages": messages})
            assert started.structured_content["status"] in ("CREATED", "IN_PROGRESS"), started
            return started.structured_content["jobId"]

        job = {"jobId": await start("ok;words=100;delay_ms=500")}
        done = await client.call_tool("perplexity_research_poll", job)
        assert done.structured_content["status"] == "COMPLETED", done.structured_content
        assert "Citations:" in done.structured_content["response"]
        job = {"jobId": await start("stuck")}
        cancelled = await client.call_tool("perplexity_research_cancel", job)
        assert not cancelled.is_error, cancelled.content
        after = await client.call_tool("perplexity_research_poll", job)
        assert after.structured_content["status"] == cancelled.structured_content["status"], after
        unknown = await client.call_tool("perplexity_research_poll", {"jobId": "0" * 32})
        assert not unknown.is_error, unknown.content

    async def quick(self, client: Client) -> None:
        found = await client.call_tool("perplexity_search", {"query": sim("Find it", "ok;words=50;delay_ms=0")})
        assert found.structured_content["status"] == "completed", found
        messages = [{"role": "user", "content": sim("Tell me", "ok;words=50;delay_ms=0")}]
        for tool in ("perplexity_ask", "perplexity_reason", "perplexity_research"):
            told = await client.call_tool(tool, {"messages": messages})
            assert told.structured_content["response"] == told.content[0].text, tool

    async def errors(self, client: Client) -> None:
        async def refused(tool: str, arguments: dict, code: str) -> None:
            answer = await client.call_tool(tool, arguments)
            assert answer.is_error and answer.content[0].text.startswith(f"{code}: "), answer
            assert answer.meta["outlast/error"]["code"] == code and answer.structured_content is None, answer

        await refused("perplexity_deep_research", {"query": ""}, "VALIDATION_ERROR")
        await refused("perplexity_deep_research", {"query": "x", "colour": "red"}, "VALIDATION_ERROR")
        await refused("get_conversation_history", {"conversationId": "f" * 32}, "CONVERSATION_NOT_FOUND")
        await refused("perplexity_deep_research", {"query": sim(self.nonce, "quota")}, "QUOTA_EXHAUSTED")
        try:
            await client.call_tool("no_such_tool", {})
        except MCPError as error:
            assert error.error.code == -32602, error.error
        else:
            raise AssertionError("an unknown tool was answered")

    async def again(self, client: Client) -> None:
        """A client that gives up on a call makes it again and gets the same research."""
        query = {"query": sim(f"Worth waiting for, {self.nonce}", "ok;words=100;delay_ms=2500")}
        began = time.monotonic()
        try:
            await client.call_tool("perplexity_deep_research", query, read_timeout_seconds=1)
        except MCPError:
            assert time.monotonic() - began < 2.5
        else:
            raise AssertionError("the client did not give up")
        answer = await client.call_tool("perplexity_deep_research", query)
        assert answer.structured_content["status"] == "completed", answer
        assert time.monotonic() - began < 4.5, "the research was begun anew"

    async def queued(self, client: Client) -> None:
        told: list[float] = []

        async def progress(value: float, _total: float | None, _message: str | None) -> None:
            told.append(value)

        query = {"query": sim(f"Later, {self.nonce}", "ok;words=100;delay_ms=2500")}
        answer = await client.call_tool("perplexity_deep_research", query)
        assert answer.structured_content["responseId"] == "queued", answer
        conversation = answer.structured_content["conversationId"]
        wanted = {"conversationIds": [conversation]}
        waited = await client.call_tool("await_conversation_histories", wanted, progress_callback=progress)
        assert waited.structured_content[conversation]["status"]["status"] == "completed", waited.structured_content
        assert len(told) >= 2 and told == sorted(set(told)), told

    async def task(self, client: Client, tasks: Tasks) -> None:
        query = {"query": sim(f"As a task, {self.nonce}", "ok;words=100;delay_ms=2500")}
        answer = await client.call_tool("perplexity_deep_research", query)
        assert answer.structured_content["status"] == "completed", answer
        if not self.modern:
            assert not tasks.seen
            return
        assert len(tasks.seen) == 1 and any(tasks.said), tasks.said
        tasks.cancel_next = True
        try:
            await client.call_tool("perplexity_research", {"messages": [{"role": "user", "content": "[[sim:stuck]]"}]})
        except Ended as ended:
            assert ended.state.status == "cancelled", ended.state
        else:
            raise AssertionError("a cancelled task had a result")
        failing = await client.call_tool("perplexity_deep_research", {"query": sim(self.nonce, "quota")})
        assert failing.is_error and failing.content[0].text.startswith("QUOTA_EXHAUSTED"), failing
        assert (await task(client.session, tasks.seen[0])).status == "completed"
        try:
            await task(client.session, "0" * 32)
        except MCPError as error:
            assert error.error.code == -32602, error.error
        else:
            raise AssertionError("an unknown task was found")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--transport", choices=["stdio", "http"], required=True)
    parser.add_argument("--era", choices=list(MODES), required=True)
    parser.add_argument("--outlast", help="the binary, for stdio")
    parser.add_argument("--url", help="a server that holds calls, for HTTP")
    parser.add_argument("--queued-url", help="a server that queues them, for HTTP")
    parser.add_argument("--token", default="", help="what to show it")
    parser.add_argument("--replicas", action="store_true", help="several servers are behind one address")
    heard = Heard()
    logging.getLogger().addHandler(heard)
    run = Run(parser.parse_args())
    heard.late_answers = run.given.replicas and not run.modern
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            asyncio.run(run.all())
        except BaseException as error:  # noqa: BLE001, a lost connection is a failure as well
            traceback.print_exc()
            run.row("the connection", f"{type(error).__name__}: {error}"[:300].replace("\n", " "))
        said = heard.records + [str(warning.message) for warning in warned]
    run.row("no warning", "; ".join(said)[:400].replace("\n", " "))
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
