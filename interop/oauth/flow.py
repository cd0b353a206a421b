"""The OAuth flow of the official Python client against one outlast: every check is one line, `ok` or `FAIL` with what was wrong.

The lines on standard error are the transcript: each request to either server, with secrets cut short.
"""

import argparse
import asyncio
import base64
import contextlib
import json
import re
import sys
import time
from urllib.parse import parse_qs, urljoin, urlparse

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

MODES = {"legacy": "legacy", "auto": "auto", "2026-07-28": "2026-07-28"}
CALLBACK = "http://127.0.0.1:1/callback"


def short(text: str) -> str:
    return re.sub(r"((?:code|token|verifier|challenge|state|secret)[^=&\"]*=)[^&\"]{8,}", r"\1...", text)


async def note(response: httpx2.Response) -> None:
    challenge = response.headers.get("www-authenticate")
    said = f"{response.request.method} {short(str(response.request.url))} -> {response.status_code}"
    print(said + (f"\n  {challenge}" if challenge else ""), file=sys.stderr, flush=True)


class Storage:
    """What a client keeps between its runs."""

    def __init__(self) -> None:
        self.tokens = None
        self.client_info = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens) -> None:
        self.tokens = tokens

    async def get_client_info(self):
        return self.client_info

    async def set_client_info(self, client_info) -> None:
        self.client_info = client_info


class Person:
    def __init__(self, url: str, account: str) -> None:
        self.account = account
        self.storage = Storage()
        self.answer: dict[str, list[str]] = {}
        metadata = OAuthClientMetadata(
            client_name="outlast-interop",
            redirect_uris=[CALLBACK],
            token_endpoint_auth_method="none",
            grant_types=["authorization_code", "refresh_token"],
        )
        self.auth = OAuthClientProvider(url, metadata, self.storage, self.browse, self.callback)

    async def browse(self, start: str) -> None:
        """A browser that follows redirects with its cookies, up to the client's own address."""
        async with httpx2.AsyncClient(headers={"x-account": self.account}, event_hooks={"response": [note]}) as browser:
            url = start
            for _ in range(20):
                response = await browser.get(url)
                url = urljoin(url, response.headers["location"])
                if urlparse(url).path == "/callback":
                    self.answer = parse_qs(urlparse(url).query)
                    return
        raise RuntimeError("the sign-in goes round in circles")

    async def callback(self) -> AuthorizationCodeResult:
        found = {name: values[0] for name, values in self.answer.items()}
        return AuthorizationCodeResult(code=found["code"], state=found.get("state"), iss=found.get("iss"))

    def claims(self) -> dict:
        body = self.storage.tokens.access_token.split(".")[1]
        return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))


class Run:
    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.job = ""

    async def check(self, name: str, doing) -> None:
        print(f"\n# {name}", file=sys.stderr, flush=True)
        try:
            async with asyncio.timeout(150):
                await doing
            problem = ""
        except BaseException as error:  # noqa: BLE001, every failure is a row
            problem = f"{type(error).__name__}: {error}"[:300].replace("\n", " ")
        print("\t".join(["python", "http", self.given.era, name, f"FAIL {problem}" if problem else "ok"]), flush=True)

    @contextlib.asynccontextmanager
    async def client(self, person: Person):
        async with create_mcp_http_client(auth=person.auth) as http:
            http.event_hooks = {"response": [note]}
            transport = streamable_http_client(self.given.url, http_client=http)
            async with Client(transport, mode=MODES[self.given.era]) as client:
                yield client

    async def control(self, action: str) -> None:
        async with httpx2.AsyncClient() as http:
            await http.post(f"{self.given.issuer}/control/{action}")

    async def poll(self, client) -> dict:
        return (await client.call_tool("perplexity_research_poll", {"jobId": self.job})).structured_content

    async def sign_in(self, client) -> None:
        assert self.ann.claims()["aud"] == self.given.url, self.ann.claims()
        assert self.ann.storage.tokens.scope == "outlast:read outlast:run", self.ann.storage.tokens.scope
        tools = await client.list_tools()
        assert any(tool.name == "perplexity_research_start" for tool in tools.tools)

    async def expiry(self, client) -> None:
        delay = (self.given.lifetime + 4) * 1000
        words = f"Why? python {self.given.era} [[sim:ok;words=60;delay_ms={delay}]]"
        started = await client.call_tool("perplexity_research_start", {"messages": [{"role": "user", "content": words}]})
        self.job = started.structured_content["jobId"]
        begun = time.time()
        polled = await self.poll(client)
        assert time.time() - begun > self.given.lifetime, "the token expired while the poll waited"
        assert polled["status"] in ("COMPLETED", "IN_PROGRESS"), polled

    async def refresh(self, client) -> None:
        before = self.ann.storage.tokens.access_token
        await asyncio.sleep(max(0, self.ann.claims()["exp"] + 61 - time.time()))
        assert (await self.poll(client))["status"] != "NOT_FOUND"
        assert self.ann.storage.tokens.access_token != before

    async def rotation(self) -> None:
        await self.control("rotate")
        await asyncio.sleep(0.6)
        async with self.client(Person(self.given.url, "ann")) as client:
            assert (await self.poll(client))["status"] != "NOT_FOUND"

    async def down(self) -> None:
        # With a new token: this client refreshes one that has expired before it is used.
        async with self.client(Person(self.given.url, "ann")) as client:
            await self.control("down")
            try:
                assert (await self.poll(client))["status"] != "NOT_FOUND"
            finally:
                await self.control("up")

    async def another(self) -> None:
        async with self.client(Person(self.given.url, "ben")) as client:
            assert (await self.poll(client))["status"] == "NOT_FOUND"

    async def all(self) -> None:
        self.ann = Person(self.given.url, "ann")
        async with self.client(self.ann) as client:
            await self.check("sign-in", self.sign_in(client))
            await self.check("expiry in a poll", self.expiry(client))
            await self.check("refresh", self.refresh(client))
            await self.check("key rotation", self.rotation())
            await self.check("issuer down", self.down())
            await self.check("another person", self.another())


def main() -> None:
    arguments = argparse.ArgumentParser()
    for name in ("url", "issuer", "era"):
        arguments.add_argument(f"--{name}", required=True)
    arguments.add_argument("--lifetime", type=int, required=True)
    asyncio.run(Run(arguments.parse_args()).all())


main()
