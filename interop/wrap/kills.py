"""Kills the client, the front, the keeper, the wrapped server, or front and keeper together at a random moment of a call, and looks at what is left.

What must hold, whatever was killed and when:
- no call is executed twice: the server notes every execution in a file;
- a call that was under way while only its client or front was killed gives its result to the next client;
- every other call ends with its result or with "may or may not have happened", never with silence;
- a result that is stored is found again;
- no client gets an answer to a request of the one before it: every client uses the same ids;
- all this also for a client of the stateless era, which sends no greeting;
- the next call works;
- at the end no process and no socket is left.
"""

import argparse
import collections
import json
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

LIMIT = 30
VICTIMS = ("client", "front", "keeper", "server", "front and keeper")
# A keeper that is killed in the moment of a hand-off, before the same call is made again.
AT_HAND_OFF = 0.3
HERE = Path(__file__).resolve().parent
UNSURE = "may or may not have happened"
# A server that ends while no call is under way ends its front, as it would end its client's pipe without wrap.
GONE = "server ended first"


def client(command):
    """A client as a process of its own: does what its input says and prints what the server says."""
    front = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    print(json.dumps({"front": front.pid}), flush=True)

    def copy():
        for line in front.stdout:
            sys.stdout.buffer.write(line)
            sys.stdout.flush()
        os._exit(0)

    threading.Thread(target=copy, daemon=True).start()
    for line in sys.stdin.buffer:
        front.stdin.write(line)
        front.stdin.flush()
    front.stdin.close()
    front.wait()


class Client:
    """A client process and what it heard."""

    def __init__(self, world):
        command = [sys.executable, str(HERE / "kills.py"), "client", *world.command]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=world.environment
        )
        self.heard, self.front, self.last = queue.Queue(), None, 0
        self.is_modern, self.problems = world.is_modern, world.problems
        self.reads, world.clients = {}, world.clients + 1
        self.name = f"client {world.clients} of {world.folder.name}"
        self.front = json.loads(self.process.stdout.readline())["front"]
        threading.Thread(target=self.read, daemon=True).start()
        if not self.is_modern:
            self.send({"id": "greeting", "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "kills", "version": "1"}}})

    def read(self):
        for line in self.process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue  # Half a line: the client was killed while it wrote.
            if message.get("id") == "greeting":
                self.send({"method": "notifications/initialized"})
            elif str(message.get("id")).startswith("read "):
                self.reads[message["id"]] = message
                if message.get("result", {}).get("uri", self.name) != self.name:
                    self.problems.append(f"{self.name} got the answer of another: {message}")
            elif "id" in message and "method" not in message:
                self.heard.put(message)
        self.heard.put(None)

    def read_resource(self, ms):
        """A request that is no call, under an id that every client uses."""
        self.send({"id": "read 1", "method": "resources/read", "params": {"uri": self.name, "ms": ms}})

    def send(self, message):
        if self.is_modern and "id" in message:
            message["params"]["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "kills", "version": "1"}}
        try:
            self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self.process.stdin.flush()
        except (OSError, ValueError):
            pass  # It was killed, or has left.

    def call(self, name, arguments):
        self.last += 1
        self.send({"id": self.last, "method": "tools/call", "params": {"name": name, "arguments": arguments}})

    def answer(self, limit=LIMIT):
        """The text of the next answer; None when the client or its front is gone, or when it stays silent."""
        try:
            message = self.heard.get(timeout=limit)
        except queue.Empty:
            return "SILENCE"
        if message is None:
            return None
        if "error" in message:
            return f"ERROR {message['error']}"
        return " ".join(block.get("text", "") for block in message["result"]["content"])

    def leave(self):
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise RuntimeError(f"the front {self.front} does not leave when its client does") from None


class World:
    """A data directory, and one call after the other in it."""

    victims = VICTIMS

    def __init__(self, outlast, seed):
        self.random = random.Random(seed)
        self.folder = Path(tempfile.mkdtemp(prefix="outlast-kills-"))
        self.ledger = self.folder / "ledger"
        self.ledger.touch()
        self.command = [outlast, "wrap", "--after", "300ms", "--idle-ms", "2000", "--", sys.executable,
                        str(HERE / "slow_server.py")]
        self.environment = {**os.environ, "OUTLAST_DATA_DIR": str(self.folder / "data"), "LEDGER": str(self.ledger),
                            "HOME": str(self.folder)}
        self.counts, self.problems = collections.Counter(), []
        # Half of the worlds have clients of the stateless era.
        self.is_modern, self.clients = seed % 2 == 1 and type(self) is World, 0

    def processes(self):
        """What runs in this world: pid and command line."""
        mark = f"OUTLAST_DATA_DIR={self.folder / 'data'}".encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if mark in (entry / "environ").read_bytes().split(b"\0"):
                        line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                        if line:
                            yield int(entry.name), line
                except OSError:
                    pass

    def find(self, victim, client):
        if victim == "client":
            return [client.process.pid]
        if victim == "front":
            return [client.front]
        if victim == "front and keeper":
            return [client.front, *self.find("keeper", client)]
        is_server = victim == "server"
        lines = ((pid, line) for pid, line in self.processes() if "slow_server.py" in line)
        return [pid for pid, line in lines if (" wrap " not in line if is_server else " --keeper " in line)]

    def noted(self, what, n):
        return self.ledger.read_text().split("\n").count(f"{what} {n}")

    def sockets(self):
        return (self.folder / "data" / "wrap").glob("*.sock")

    def begin(self, client, n, ms):
        client.call("work", {"n": n, "ms": ms})

    def round(self, n):
        victim = self.victim = self.random.choice(self.victims)
        ms = self.random.choice((0, self.random.randrange(100), self.random.randrange(1200)))
        first = Client(self)
        is_hand_off = self.victim == "keeper" and self.random.random() < AT_HAND_OFF
        if is_hand_off:
            ms = 3000
        first.read_resource(self.random.randrange(3000))
        self.begin(first, n, ms)
        if is_hand_off:
            told = first.answer()
            if not handed_off(told):
                self.problems.append(f"call {n} was not handed off: {told}")
            self.counts["kills at a hand-off"] += 1
        else:
            time.sleep(self.random.random() * 1.3)
        killed = 0
        for pid in self.find(victim, first):
            try:
                os.kill(pid, signal.SIGKILL)
                killed += 1
            except ProcessLookupError:
                pass
        self.counts[f"kills of a {victim}"] += min(killed, 1)
        told = self.repeat(first, n, ms) if is_hand_off else self.after(victim, first, n, ms)
        if self.noted("start", n) > 1:
            told = f"executed {self.noted('start', n)} times"
            self.problems.append(f"call {n}, {victim} killed: {told}")
        self.counts[told] += 1

    def after(self, victim, first, n, ms):
        ended, arguments, self.client = self.noted("end", n), {"n": n, "ms": ms}, first
        if victim in ("client", "front", "front and keeper"):
            is_sure = victim != "front and keeper"
            first.leave()
            text = None
            while (said := first.answer()) is not None:
                text = said
            self.client = Client(self)
            self.client.read_resource(self.random.randrange(500))
            job = handed_off(text)
            if text is not None and not job:
                outcome = self.judge(n, text, victim, is_sure)
            elif job and self.random.random() < 0.5:
                outcome = self.fetch(n, job, victim, is_sure)
            elif job or not ended or not is_sure:
                # It was under way when its caller left: the same call attaches to it, or is told what is known.
                self.client.call("work", arguments)
                outcome = self.follow(n, victim, is_sure)
            else:
                # The answer was on its way: whether the client had it is not known, so it is not asked for again.
                outcome = "answer on its way"
        else:
            outcome = self.follow(n, victim, is_sure=False)
        # The next call works, or the one after it, if it was sent before the front saw that its keeper or server is gone.
        for next_call in (1_000_000 + n, 2_000_000 + n):
            self.client.call("work", {"n": next_call, "ms": 0})
            if self.follow(next_call, victim, next_call > 2_000_000) not in (UNSURE, GONE):
                break
        self.counts["next calls"] += 1
        self.client.leave()
        return outcome

    def repeat(self, client, n, ms):
        """The same call again, at once and until its end is known: for at most 5 s it may be still running."""
        since = time.monotonic()
        while True:
            client.call("work", {"n": n, "ms": ms})
            text = client.answer()
            if text is None or not handed_off(text) and "was killed before it answered" not in text:
                break
            if time.monotonic() > since + 7:
                self.problems.append(f"call {n}, keeper killed at its hand-off: still running")
                break
        client.leave()
        if text is not None and UNSURE in text:
            return UNSURE
        self.problems.append(f"call {n}, keeper killed at its hand-off: answered with {text}")
        return "wrong"

    def follow(self, n, victim, is_sure):
        """What becomes of a call that the client waits for."""
        text = self.client.answer()
        job = handed_off(text)
        if job:
            return self.fetch(n, job, victim, is_sure)
        outcome = self.judge(n, text, victim, is_sure)
        if outcome == GONE:
            self.start_again()
        return outcome

    def start_again(self):
        """The next client, after one whose server ended first."""
        self.client.leave()
        self.client = Client(self)

    def fetch(self, n, job, victim, is_sure):
        self.counts["handed off"] += 1
        until = time.monotonic() + LIMIT
        while True:
            self.client.call("get_result", {"job_id": job})
            text = self.client.answer()
            if text is None and victim == "server" and time.monotonic() < until:
                # The call had ended when the server was killed. Its result is in the store.
                self.counts["fetched by the next client"] += 1
                self.start_again()
            elif text is None or not handed_off(text) or time.monotonic() > until:
                return self.judge(n, text, victim, is_sure)
            time.sleep(0.05)

    def judge(self, n, text, victim, is_sure):
        if text is None and victim == "server":
            return GONE
        if text is not None and f"done {n}" in text:
            return "results"
        if text is not None and UNSURE in text and not is_sure:
            return UNSURE
        self.problems.append(f"call {n}, {victim} killed: answered with {text}")
        return "wrong"

    def end(self):
        """Nothing is left but the store."""
        if not self.problems:
            Client(self).leave()
        until = time.monotonic() + LIMIT
        while True:
            left = [*map(str, self.processes()), *map(str, self.sockets())]
            if not left or time.monotonic() > until:
                break
            time.sleep(0.2)
        self.problems += [f"left behind: {it}" for it in left]
        self.counts["left behind"] += len(left)
        for pid, _ in list(self.processes()):
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


def handed_off(text):
    """The job of a call that was handed off or is still running."""
    if text is None or "done " in text or UNSURE in text:
        return None
    found = re.search(r"\b[0-9a-f]{32}\b", text)
    return found and found.group()


def run(kind):
    """Kills in worlds of this kind, side by side, and says what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--outlast", required=True)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--beside", type=int, default=4)
    parser.add_argument("--stop", action="store_true", help="wait with everything as it is when the harness is stuck")
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    worlds = [kind(args.outlast, args.seed + number) for number in range(args.beside)]
    rounds = iter(range(1, 10**6))
    lock = threading.Lock()

    def carry(world):
        while True:
            with lock:
                if sum(it.counts[f"kills of a {victim}"] for it in worlds for victim in kind.victims) >= args.kills:
                    break
                n = next(rounds)
            try:
                world.round(n)
            except Exception as error:  # A broken harness is no proof.
                world.problems.append(f"call {n}, {world.victim} killed: {error!r}")
                if args.stop:
                    print(world.problems, world.folder, flush=True)
                    time.sleep(600)
                break
        world.end()

    threads = [threading.Thread(target=carry, args=(world,)) for world in worlds]
    begun = time.monotonic()
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    counts = sum((world.counts for world in worlds), collections.Counter())
    for name, count in sorted(counts.items()):
        print(f"{count:6} {name}")
    print(f"{time.monotonic() - begun:6.0f} seconds")
    problems = [problem for world in worlds for problem in world.problems]
    for problem in problems[:20]:
        print(f"PROBLEM {problem}")
    print(f"{len(problems):6} problems")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["client"]:
        client(sys.argv[2:])
    else:
        run(World)
