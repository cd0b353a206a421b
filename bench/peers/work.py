"""What is measured. Each function does one kind of work for several contenders in turns and returns, for each by its name, figures."""

import asyncio
import json
import random
import statistics
import time

from client import Client, Gone, timed

REPORT = "ok;words=4500;delay_ms=0"
# How a provider sends a report of 30 kB: an event for five words, as the simulator does, or a few large ones.
STREAMS = {"small": REPORT, "large": "ok;words=4500;chunks=4;delay_ms=0"}


def middle(values):
    return statistics.median(values)


def late(values):
    """The 99th of a hundred."""
    return sorted(values)[min(len(values) - 1, round(0.99 * (len(values) - 1)))]


def both(values):
    return middle(values), late(values)


async def cold_start(contenders, rounds):
    """From the program's start to the answer to tools/list; the first round, which warms the disk's cache and makes stores, is left out."""
    took = {one.name: [] for one in contenders}
    worked = {one.name: [] for one in contenders}
    homes = [one.fresh() for one in contenders]
    for turn in range(rounds + 1):
        for one in homes:
            began = time.perf_counter()
            client = await Client(one).start()
            await client.request("tools/list", {})
            if turn:
                took[one.name].append((time.perf_counter() - began) * 1e3)
                worked[one.name].append(client.cpu() * 1e3)
            await client.close()
    return {name: {"start": middle(took[name]), "start_cpu": statistics.mean(worked[name])} for name in took}


async def memory(contenders, calls):
    figures = {}
    for one in contenders:
        client = await Client(one.fresh()).start()
        await client.request("tools/list", {})
        await asyncio.sleep(1)
        idle = client.memory()
        for _ in range(calls):
            if one.jobs:
                await client.end(await client.begin(REPORT), 0.02)
            else:
                await client.research(REPORT)
        figures[one.name] = {"idle": idle, "used": client.memory()}
        await client.close()
    return figures


async def calls(contenders, blocks, each, stream):
    """Calls that the provider answers at once, one after the other."""
    report = STREAMS[stream]
    clients = [await Client(one.fresh()).start() for one in contenders]
    took, worked = {one.name: [] for one in contenders}, {one.name: 0.0 for one in contenders}
    for block in range(blocks + 1):
        for client in clients:
            before = client.cpu()
            times = [await timed(client.research(report)) for _ in range(each)]
            if block:  # the first is for getting warm
                took[client.contender.name] += times
                worked[client.contender.name] += client.cpu() - before
    for client in clients:
        await client.close()
    name = lambda client: client.contender.name
    return {
        name(one): {f"call_{stream}": both(took[name(one)]), f"call_cpu_{stream}": worked[name(one)] * 1e3 / (blocks * each)}
        for one in clients
    }


async def callers(contenders, count, each, rounds, stream):
    """So many callers at once: calls a second, the middle of the rounds."""
    report = STREAMS[stream]
    clients = [await Client(one.fresh()).start() for one in contenders]
    paces = {one.name: [] for one in contenders}

    async def caller(client):
        for _ in range(each):
            await client.research(report)

    for turn in range(rounds + 1):
        for client in clients:
            began = time.perf_counter()
            await asyncio.gather(*(caller(client) for _ in range(count)))
            if turn:
                paces[client.contender.name].append(count * each / (time.perf_counter() - began))
    for client in clients:
        await client.close()
    return {name: {f"pace_{stream}": middle(found)} for name, found in paces.items()}


async def wake_up(contender, simulator, rounds, other=False, pause=None):
    """From the provider's end to the client's answer, and what the start of a job took. With `other` the client speaks to a
    process that does no work. A provider ends at a moment that no poll knows."""
    here = contender.fresh()
    worker = await Client(here).start()
    client = await Client(here.beside("--no-worker")).start() if other else worker
    starts, wakes = [], []
    for _ in range(rounds):
        before = await simulator.submits()
        starts.append(await timed(_keep(jobs := [], worker.begin("ok;words=600;delay_ms=0;hold"))))
        waiting = asyncio.create_task(client.end(jobs[0], pause))
        while await simulator.submits() == before:
            await asyncio.sleep(0.005)
        await asyncio.sleep(random.uniform(0.2, 0.2 + (pause or jobs[0][1] or 0.3)))
        began = time.perf_counter()
        await simulator.release()
        if not await waiting:
            raise RuntimeError(f"{contender.name}: a job did not end well")
        wakes.append((time.perf_counter() - began) * 1e3)
    for one in {client, worker}:
        await one.close()
    return {"job_start": both(starts), "wake": both(wakes)}


async def _keep(to, awaitable):
    to.append(await awaitable)


async def storm(contender, jobs, seconds):
    """So many jobs at once; what each took beyond the provider's time."""
    client = await Client(contender.fresh().many()).start()
    before, began, over = client.cpu(), time.perf_counter(), []
    scenario = f"ok;words=600;delay_ms={int(seconds * 1e3)}"
    done = 0

    async def one():
        nonlocal done
        mine = time.perf_counter()
        if contender.jobs:
            well = await client.end(await client.begin(scenario))
        else:
            well = bool(await client.research(scenario))
        done += well
        over.append((time.perf_counter() - mine - seconds) * 1e3)

    await asyncio.wait_for(asyncio.gather(*(one() for _ in range(jobs))), 240)
    wall, cpu, peak = time.perf_counter() - began, client.cpu() - before, client.memory("VmHWM")
    await client.close()
    return {"storm": (wall, peak, cpu), "storm_over": both(over), "storm_done": done}


async def killed(contender, simulator, jobs, seconds):
    """SIGKILL with all jobs under way, then the next server: what comes of them."""
    here = contender.fresh().many()
    client = await Client(here).start()
    await simulator.reset()
    scenario = f"ok;words=600;delay_ms={int(seconds * 1e3)}"
    if not contender.jobs:
        waiting = [asyncio.create_task(client.research(scenario)) for _ in range(jobs)]
    else:
        started = await asyncio.gather(*(client.begin(scenario) for _ in range(jobs)))
    while await simulator.submits() < jobs:
        await asyncio.sleep(0.02)
    await asyncio.sleep(1)  # a request whose answer is still on its way is another story: docs/guarantees.md
    await client.kill()
    began = time.perf_counter()
    if not contender.jobs:
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        lost = sum(isinstance(answer, Gone) for answer in answers)
        return {"killed": (lost, None, await simulator.submits() - jobs)}
    client = await Client(here).start()
    ended = await asyncio.gather(*(asyncio.wait_for(client.end(job), 120) for job in started), return_exceptions=True)
    took = time.perf_counter() - began
    await client.close()
    kept = sum(end is True for end in ended)
    return {"killed": (jobs - kept, took if kept else None, await simulator.submits() - jobs)}


async def capped(contender, simulator, cap, seconds):
    """A client that gives up on every request after `cap` seconds and asks again, against work that takes `seconds`."""
    client = await Client(contender.fresh()).start()
    await simulator.reset()
    scenario, began = f"ok;words=600;delay_ms={int(seconds * 1e3)}", time.perf_counter()
    answered = None
    for _ in range(5):
        ask = {"name": contender.tool, "arguments": contender.question(scenario, again=True)}
        number, future = client.send("tools/call", ask)
        try:
            answer = await asyncio.wait_for(future, cap)
        except TimeoutError:
            client.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
            continue
        if contender.modern and b'"taskId"' in answer:
            made = json.loads(answer)["result"]
            if not await client.end((made["taskId"], made["pollIntervalMs"] / 1e3)):
                break
        answered = time.perf_counter() - began
        break
    paid = await simulator.submits()
    await client.close()
    return {"capped": (answered, paid)}
