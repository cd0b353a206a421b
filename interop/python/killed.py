"""One Python client whose servers are behind a proxy, one of which is killed while calls are under way. It prints `ready` when
they are, then one line for each check, as interop.py does, and `broken N`: the calls that ended with the server.
"""

import argparse
import asyncio
import sys

from interop import MODES, Run, sim
from tasks import Tasks

CALLS = 6


class KilledRun(Run):
    broken = 0

    async def once_more(self, call, *arguments, **options):
        """A call that ends with its server is made again, as a client's user would."""
        while True:
            try:
                return await call(*arguments, **options)
            except Exception as error:  # noqa: BLE001, whatever a lost connection looks like
                self.broken += 1
                if self.broken > 10 * CALLS:
                    raise AssertionError(f"no server answers: {error}") from error
                await asyncio.sleep(0.2)

    async def all(self) -> None:
        options = {"extensions": [Tasks()]} if self.modern else {}
        async with self.client() as client, self.client(**options) as asking:
            jobs = [await self.start(client, number) for number in range(CALLS)]
            polls = [
                asyncio.create_task(self.once_more(client.call_tool, "perplexity_research_poll", {"jobId": job}))
                for job in jobs
            ]
            told = [asyncio.Event() for _ in range(CALLS)]
            calls = [asyncio.create_task(self.held(client, number, told[number])) for number in range(CALLS)]
            # In the newest era a task, in the older one more held call: the same for the caller.
            query = {"query": sim(f"Asked for at last, {self.nonce}", "ok;words=100;delay_ms=30000")}
            last = asyncio.create_task(self.once_more(asking.call_tool, "perplexity_deep_research", query))
            await asyncio.gather(*(event.wait() for event in told))
            print("ready", flush=True)
            await self.check("polls go on", self.polled(polls))
            await self.check("held calls go on", self.called(client, calls))
            await self.check("task, or a held call", self.ended(last))
        print(f"broken\t{self.broken}", flush=True)

    async def start(self, client, number: int) -> str:
        messages = [{"role": "user", "content": sim(f"Job {number}, {self.nonce}", "ok;words=100;delay_ms=30000")}]
        started = await client.call_tool("perplexity_research_start", {"messages": messages})
        return started.structured_content["jobId"]

    async def held(self, client, number: int, told: asyncio.Event):
        async def progress(_value: float, _total: float | None, _message: str | None) -> None:
            told.set()

        query = {"query": sim(f"Call {number}, {self.nonce}", "ok;words=100;delay_ms=30000")}
        return await self.once_more(client.call_tool, "perplexity_deep_research", query, progress_callback=progress)

    async def polled(self, polls: list) -> None:
        for answer in await asyncio.gather(*polls):
            assert answer.structured_content["status"] == "COMPLETED", answer.structured_content

    async def called(self, client, calls: list) -> None:
        for answer in await asyncio.gather(*calls):
            shape = answer.structured_content
            assert not answer.is_error and shape["status"] == "completed", answer.content
            # Whichever server answers this is another one than carried the call, two times out of three.
            history = await client.call_tool("get_conversation_history", {"conversationId": shape["conversationId"]})
            assert history.structured_content["messages"][-1]["role"] == "assistant", history.structured_content

    async def ended(self, last) -> None:
        answer = await last
        assert answer.structured_content["status"] == "completed", answer


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--era", choices=list(MODES), required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--token", required=True)
    given = parser.parse_args()
    given.transport = "http"
    run = KilledRun(given)
    asyncio.run(run.all())
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
