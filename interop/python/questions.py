"""The Python client and the questions of jobs (M4): a workflow command asks, and the user of the client accepts, declines or
cannot be asked. Every check is one line, `ok` or `FAIL`.
"""

import argparse
import asyncio
import contextlib
import os
import re
import sys
import tempfile

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client


class Run:
    def __init__(self, given: argparse.Namespace) -> None:
        self.given, self.failed = given, 0
        self.nonce = f"{given.transport}-{given.era}-{os.getpid()}"

    async def check(self, name: str, doing) -> None:
        problem = "ok"
        try:
            async with asyncio.timeout(60):
                await doing
        except Exception as error:  # noqa: BLE001, every failure is a row
            problem = f"FAIL {type(error).__name__}: {error}"[:400].replace("\n", " ")
            self.failed += 1
        print("\t".join(["python", self.given.transport, self.given.era, name, problem]), flush=True)

    async def ask(self, message: str, reaction: types.ElicitResult | None):
        """Calls the workflow; without a reaction the client cannot show a form. Returns the result and the forms."""
        forms = []

        async def react(_context, params):
            forms.append(params)
            return reaction

        options = {"elicitation_callback": react} if reaction else {}
        async with contextlib.AsyncExitStack() as stack:
            if self.given.transport == "http":
                headers = {"Authorization": f"Bearer {self.given.token}"}
                http = await stack.enter_async_context(create_mcp_http_client(headers=headers))
                transport = streamable_http_client(self.given.url, http_client=http)
            else:
                data = stack.enter_context(tempfile.TemporaryDirectory())
                log = stack.enter_context(open(os.path.join(data, "log"), "w"))
                environment = {"OUTLAST_DATA_DIR": data, "OUTLAST_DETACH": "false", "PATH": os.environ["PATH"]}
                arguments = ["serve", "--config", self.given.config, "--tools", "research-jobs"]
                command = StdioServerParameters(command=self.given.outlast, args=arguments, env=environment)
                transport = stdio_client(command, errlog=log)
            client = await stack.enter_async_context(Client(transport, mode=self.given.era, **options))
            result = await client.call_tool("deploy", {"message": f"{message} {self.nonce}"})
            return result, forms

    async def accept(self) -> None:
        yes = types.ElicitResult(action="accept", content={"answer": "yes"})
        result, forms = await self.ask("accept", yes)
        assert result.content[0].text == "was yes\n", result
        assert [form.message for form in forms] == ["Deploy?"], forms

    async def decline(self) -> None:
        result, _ = await self.ask("decline", types.ElicitResult(action="decline"))
        assert result.content[0].text == "was no\n", result

    async def told(self) -> None:
        result, _ = await self.ask("told", None)
        text = result.content[0].text
        assert result.is_error and re.match("NOT_ANSWERED: .*outlast jobs answer [0-9a-f]{32} TEXT", text), result


async def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ["transport", "era", "outlast", "config", "url", "token"]:
        parser.add_argument(f"--{name}")
    run = Run(parser.parse_args())
    await run.check("accept", run.accept())
    await run.check("decline is no", run.decline())
    await run.check("no elicitation", run.told())
    sys.exit(1 if run.failed else 0)


asyncio.run(main())
