"""Kills workflow commands that ask, runs of the researcher that wait for an approval, their workers, their servers and those
who answer with kill -9 at random moments (M4).

What must hold, whatever was killed:
- every question survives, and every script and run comes to its end;
- one answer counts: of all that were accepted each is used, for one question, and every run of the script gets the same;
  a later answer is refused, and so is one after the deadline;
- an answer that was refused is never used;
- the paid part starts after a yes alone: not before, not after a no, and not after a deadline;
- no answer stays in the store once its run has it.

The answers are given by `outlast jobs answer`, on the page, and by MCP clients of both eras with elicitation. Every chain of
jobs has a store of its own; several are disturbed at the same time.
"""

import argparse
import collections
import concurrent.futures
import http.client
import json
import os
import queue
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

LIMIT = 300
TOKEN = "ann-0123456789abcdef0123"
FREE = ["1", "2", "3"]
OPEN_STATES = ("running", "queued")

CONFIGURATION = """
[[workflow]]
name = "script"
command = ["/bin/sh", "./script.sh"]
steps = true
env = {{ PATH = "{path}" }}
"""
SCRIPT = """
set -e
for number in {free}; do
  answer=$(outlast ask "Question $number?")
  echo "got $number $answer" >> events
  echo "$number $answer"
done
answer=$(outlast ask 'Pay?' --choices yes,no --default no --timeout {timeout})
echo "got pay $answer" >> events
if [ "$answer" = yes ]; then
  outlast step pay --rerun -- sh -c 'echo paid >> events'
fi
echo "pay $answer"
"""
RESEARCH = {"query": "How efficient are heat pumps?", "approve_plan": True}


class Client:
    """An MCP client over stdio whose user answers forms with a text, or cannot be asked."""

    def __init__(self, chain, era, text, tools):
        self.era, self.text, self.number = era, text, 0
        self.capabilities = {"elicitation": {"form": {}}} if text is not None else {}
        self.process = chain.spawn("serve", "--no-detach", "--tools", tools, stdout=subprocess.PIPE)
        self.messages = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        if era == "2025-11-25":
            self.request("initialize", {
                "protocolVersion": era, "capabilities": self.capabilities, "clientInfo": {"name": "kills", "version": "1"},
            }, 30)
            self.send({"method": "notifications/initialized"})

    def read(self):
        for line in self.process.stdout:
            self.messages.put(json.loads(line))
        self.messages.put(None)

    def send(self, message):
        try:
            self.process.stdin.write((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())
            self.process.stdin.flush()
        except OSError:
            pass

    def reaction(self):
        if self.text == "no":
            return {"action": "decline"}
        return {"action": "accept", "content": {"answer": self.text}}

    def request(self, method, params, seconds):
        """Returns the result; None if the server is gone or the time is over."""
        self.number += 1
        if self.era == "2026-07-28":
            params = {**params, "_meta": {
                "io.modelcontextprotocol/protocolVersion": self.era,
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
                "io.modelcontextprotocol/clientInfo": {"name": "kills", "version": "1"},
            }}
        self.send({"id": self.number, "method": method, "params": params})
        until = time.monotonic() + seconds
        while True:
            try:
                message = self.messages.get(timeout=max(0.01, until - time.monotonic()))
            except queue.Empty:
                return None
            if message is None:
                return None
            if message.get("method") == "elicitation/create":
                self.send({"id": message["id"], "result": self.reaction()})
            elif message.get("id") == self.number and "method" not in message:
                return message.get("result") or {"error": message.get("error")}

    def call(self, tool, arguments, seconds):
        """Makes a call, and repeats it with an answer if its result is a question."""
        params = {"name": tool, "arguments": arguments}
        result = self.request("tools/call", params, seconds)
        if result and result.get("resultType") == "input_required":
            answers = {key: self.reaction() for key in result["inputRequests"]}
            params |= {"requestState": result["requestState"], "inputResponses": answers}
            result = self.request("tools/call", params, seconds)
        return result


class Chain:
    """A job, and the jobs that retry it, in a store of their own."""

    def __init__(self, world, number):
        self.world, self.random = world, random.Random(f"{world.seed}-{number}")
        self.folder = world.folder / f"chain-{number}"
        self.folder.mkdir()
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "OUTLAST_DATA_DIR": str(self.folder),
            "OUTLAST_OWNER": "ann",
            "OUTLAST_TOKENS": f"ann={TOKEN}",
            "OUTLAST_TEST_WORKER_IDLE_MS": "500",
            "NO_PROXY": "*",
        }
        self.children, self.counts, self.problems = [], collections.Counter(), []
        self.last_progress, self.moved_at = None, 0
        # What became of the answers, by text.
        self.attempts = collections.defaultdict(set)
        self.decision = self.random.choice(["yes", "no", "deadline"])

    def arguments(self):
        return []

    def spawn(self, *arguments, stdout=subprocess.DEVNULL):
        command = [self.world.outlast, *self.arguments(), *arguments]
        child = subprocess.Popen(command, env=self.environment, stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.DEVNULL)
        self.children.append(child)
        return child

    def outlast(self, *arguments):
        command = [self.world.outlast, *self.arguments(), *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=LIMIT)

    def problem(self, why):
        self.problems.append(f"{self.folder}: {why}")

    def read(self, query, *values):
        path = self.folder / "outlast.db"
        if not path.exists():
            return []
        store = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
        try:
            return store.execute(query, values).fetchall()
        finally:
            store.close()

    def job(self):
        """Its newest job and that job's state."""
        rows = self.read("SELECT id, state FROM jobs ORDER BY seq DESC LIMIT 1")
        return rows[0] if rows else (None, None)

    def question(self):
        """The open question of its newest job."""
        rows = self.read("SELECT questions FROM questions JOIN jobs ON jobs.seq = questions.job ORDER BY jobs.seq DESC LIMIT 1")
        current = json.loads(rows[0][0]).get("current") if rows else None
        return current if current and current["state"]["is"] == "open" else None

    def processes(self):
        """Its processes by kind."""
        mark, found = str(self.folder).encode(), collections.defaultdict(list)
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                line, environment = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
            except OSError:
                continue
            words = line.split(b"\0")
            if mark not in environment:
                continue
            if b"./script.sh" in words and b"launch" not in words:
                found["script"].append(int(entry.name))
            elif b"ask" in words:
                found["ask"].append(int(entry.name))
            elif b"answer" in words:
                found["answer"].append(int(entry.name))
            elif b"serve" in words:
                found["server"].append(int(entry.name))
            elif b"worker" in words:
                found["worker"].append(int(entry.name))
        return found

    def has_worker(self):
        found = self.processes()
        return bool(found["worker"] or found["server"])

    def work(self):
        """Starts a process that runs its job."""
        how = self.random.choice(["worker", "serve"])
        arguments = ["worker", "--until-idle"] if how == "worker" else ["serve", "--no-detach", "--tools", "jobs"]
        self.counts[f"started with `{how}`"] += 1
        return self.spawn(*arguments)

    def progress(self):
        """What changes while its job goes on."""
        return self.read("SELECT count(*), max(rev) FROM jobs"), self.read("SELECT count(*), max(ended_at) FROM steps"), self.question()

    def may_go_on(self):
        """False once nothing has changed for a long time: a busy machine only takes longer."""
        now, progress = time.monotonic(), self.progress()
        if progress != self.last_progress:
            self.last_progress, self.moved_at = progress, now
        return now - self.moved_at < LIMIT

    def reap(self):
        self.children = [child for child in self.children if child.poll() is None]

    def kill(self, kinds):
        """Kills one kind of process; returns the kind, or None if there was nothing to kill."""
        found = self.processes()
        kinds = [kind for kind in kinds if found[kind]]
        if not kinds:
            return None
        kind, killed = self.random.choice(kinds), False
        for pid in found[kind]:
            try:
                os.kill(pid, signal.SIGKILL)
                killed = True
            except ProcessLookupError:
                pass
        return kind if killed else None

    # Answers

    def answer_on_command_line(self, job, _, text):
        child = subprocess.Popen(
            [self.world.outlast, *self.arguments(), "jobs", "answer", job, text],
            env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        _, why = child.communicate(timeout=LIMIT)
        if child.returncode == 0:
            return "accepted"
        return "refused" if "is not answered" in why else "unknown"

    def answer_on_page(self, job, question, text):
        server = self.spawn("serve", "--http", "127.0.0.1:0", "--no-detach", "--tools", "jobs", stdout=None)
        try:
            address = self.address_of(server)
            if not address:
                return "unknown"
            form = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin", "Origin": f"http://{address}"}
            page = http.client.HTTPConnection(address, timeout=LIMIT)
            page.request("POST", "/ui/sign-in", urllib.parse.urlencode({"token": TOKEN}), form)
            signed_in = page.getresponse()
            signed_in.read()
            form["Cookie"] = signed_in.getheader("Set-Cookie").split(";")[0]
            fields = urllib.parse.urlencode({"question": question["id"], "answer": text})
            page.request("POST", f"/ui/jobs/{job}/answer", fields, form)
            status = page.getresponse().status
            return {303: "accepted", 409: "refused"}.get(status, "unknown")
        except (OSError, http.client.HTTPException):
            return "unknown"

    def address_of(self, server):
        """The address where a server listens, by its sockets."""
        until = time.monotonic() + 30
        while server.poll() is None and time.monotonic() < until:
            try:
                links = {os.readlink(link) for link in Path(f"/proc/{server.pid}/fd").iterdir()}
                rows = Path("/proc/net/tcp").read_text().splitlines()[1:]
            except OSError:
                continue
            for row in rows:
                columns = row.split()
                if columns[3] == "0A" and f"socket:[{columns[9]}]" in links:
                    return f"127.0.0.1:{int(columns[1].split(':')[1], 16)}"
            time.sleep(0.02)
        return None

    def answer_in_client(self, job, _, text):
        era = self.random.choice(["2025-11-25", "2026-07-28"])
        client = Client(self, era, text, "jobs")
        client.call("get_job", {"job_id": job, "wait_seconds": 3}, 30)
        return "unknown"

    def answer(self, text):
        """Tries to answer the open question of its job in any way. Returns a future with the outcome."""
        question, (job, _) = self.question(), self.job()
        if not question:
            return None
        way = self.random.choice(["on_command_line", "on_command_line", "on_page", "in_client"])

        def attempt():
            outcome = "failed"
            try:
                outcome = getattr(self, f"answer_{way}")(job, question, text)
            finally:
                self.attempts[text].add(outcome)
            return outcome

        self.counts[f"answers {way}"] += 1
        return self.world.answerers.submit(attempt)

    def second_answer(self, text):
        """Answers once more after an answer that counts: it must be refused, or be for the next question."""
        job, _ = self.job()
        ran = self.outlast("jobs", "answer", job, text)
        outcome = "accepted" if ran.returncode == 0 else "refused" if "is not answered" in ran.stderr else "unknown"
        self.attempts[text].add(outcome)
        self.counts[f"second answers {outcome}"] += 1

    def wait(self, seconds):
        """Waits until its job has ended."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            _, state = self.job()
            if state not in OPEN_STATES:
                return state
            time.sleep(0.02)
        return self.job()[1]

    def end(self):
        for child in self.children:
            child.kill()
            child.wait()
        for kind in ("worker", "server"):
            for pid in self.processes()[kind]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def disturb(self, kills):
        """Kills its processes this many times, and runs it to its end. Returns the number of kills that hit."""
        hits = 0
        try:
            self.begin()
            for _ in range(3 * kills):
                self.reap()
                if not self.has_worker():
                    self.work()
                attempt = None
                if self.random.random() < 0.6:
                    self.await_question(2)
                    attempt = self.try_to_answer()
                time.sleep(self.random.uniform(0, 0.4))
                kind = self.kill(self.kinds)
                if kind:
                    hits += 1
                    self.counts[f"kills of a {kind}"] += 1
                if attempt and attempt.result(timeout=LIMIT) == "accepted" and self.random.random() < 0.5:
                    self.second_answer(self.other_answer())
                self.look()
                if self.job()[1] in ("succeeded", "cancelled") or hits == kills:
                    break
                self.retry_if_failed()
            self.finish()
            if not self.problems:
                self.check()
            left = [row for row in self.read("SELECT questions FROM questions") if json.loads(row[0]).get("current")]
            if left:
                self.problem(f"a question stays in the store: {left}")
        except Exception as error:  # noqa: BLE001, the other chains go on
            self.problem(f"{type(error).__name__}: {error}")
        finally:
            self.end()
        self.counts["chains"] += 1
        return hits

    def await_question(self, seconds):
        until = time.monotonic() + seconds
        while not self.question() and time.monotonic() < until and self.job()[1] in OPEN_STATES:
            time.sleep(0.02)
        return self.question()

    def look(self):
        """Checks what must hold at any time."""

    def retry_if_failed(self):
        """Starts a failed job again."""
        job, state = self.job()
        if state == "failed":
            ran = self.outlast("jobs", "retry", job, "--json")
            if ran.returncode != 0:
                self.problem(f"not retried: {ran.stderr}")
            self.counts["retries"] += 1


class Script(Chain):
    """A workflow command that asks."""

    kinds = ["worker", "worker", "server", "script", "ask", "answer", "answer"]

    def arguments(self):
        return ["--config", str(self.folder / "outlast.toml")]

    def begin(self):
        path = f"{Path(self.world.outlast).parent}:{os.environ['PATH']}"
        (self.folder / "outlast.toml").write_text(CONFIGURATION.format(path=path))
        timeout = "1s" if self.decision == "deadline" else "1h"
        (self.folder / "script.sh").write_text(SCRIPT.format(free=" ".join(FREE), timeout=timeout))
        started = self.outlast("run", "script", "--detach")
        # A busy machine may start no background worker in time; another one runs the job.
        if started.returncode != 0 and "the job is kept" not in started.stderr:
            raise RuntimeError(f"the script does not start: {started.stderr}")
        self.texts = 0

    def new_text(self):
        self.texts += 1
        return f"text-{self.texts}"

    def other_answer(self):
        return self.new_text()

    def try_to_answer(self):
        question = self.question()
        if not question:
            return None
        if question["text"] != "Pay?":
            return self.answer(self.new_text())
        if self.decision != "deadline":
            return self.answer(self.decision)
        # An answer after the deadline does not count.
        late = question["deadline"] / 1000 - time.time()
        if late > 0:
            time.sleep(late)
        return self.answer("yes")

    def events(self):
        path = self.folder / "events"
        return [line.split(" ") for line in path.read_text().splitlines()] if path.exists() else []

    def finish(self):
        while self.may_go_on():
            self.reap()
            if not self.has_worker():
                self.work()
            if self.await_question(1):
                attempt = self.try_to_answer()
                if attempt:
                    attempt.result(timeout=LIMIT)
            if self.job()[1] == "succeeded":
                return
            self.retry_if_failed()
        self.problem(f"is {self.job()}, with the question {self.question()}, and goes on no more")

    def check(self):
        got = {}
        for kind, *words in self.events():
            if kind == "got" and got.setdefault(words[0], words[1]) != words[1]:
                self.problem(f"question {words[0]} got the answers {got[words[0]]} and {words[1]}")
        used = [got.get(number) for number in FREE]
        for number, text in zip(FREE, used):
            outcomes = self.attempts.get(text, set())
            if not outcomes or outcomes == {"refused"}:
                self.problem(f'question {number} got {text}, which is {sorted(outcomes) or "the answer of nobody"}')
        for text, outcomes in self.attempts.items():
            if text.startswith("text-") and "accepted" in outcomes and used.count(text) != 1:
                self.problem(f"the answer {text} was accepted and used {used.count(text)} times: {got}")
        expected = "yes" if self.decision == "yes" else "no"
        is_paid = any(event == ["paid"] for event in self.events())
        if got.get("pay") != expected or is_paid != (expected == "yes"):
            self.problem(f"the decision was {self.decision}; the script got {got.get('pay')}, paid: {is_paid}")
        if self.decision == "deadline" and "accepted" in self.attempts["yes"]:
            self.problem("an answer after the deadline was accepted")
        job, _ = self.job()
        shown = json.loads(self.outlast("jobs", "show", job, "--json").stdout)
        output = "".join(part["text"] for part in shown["output"]["body"]["content"])
        expected = "".join(f"{number} {got.get(number)}\n" for number in [*FREE, "pay"])
        if output != expected:
            self.problem(f"the job has the output {output!r}, not {expected!r}")


class Approval(Chain):
    """A run of the researcher whose plan needs an approval."""

    kinds = ["worker", "worker", "server", "server", "answer"]

    def begin(self):
        self.lane = f"lane={self.folder.name},slow=20"
        self.environment |= {
            "OUTLAST_PROVIDERS": "researcher",
            "OUTLAST_MODEL_URL": f"{self.world.url}/llm/{self.lane}/v1",
            "OUTLAST_MODEL": "scripted",
            "OUTLAST_SEARCH": "searxng",
            "OUTLAST_SEARCH_URL": f"{self.world.url}/searxng/{self.lane}",
            "OUTLAST_CITATIONS_ALLOW_PRIVATE": "true",
            "OUTLAST_ASYNC_RESEARCH": self.random.choice(["auto", "false"]),
        }
        self.is_approved, self.callers = False, 0
        self.ask()

    def ask(self):
        """Makes the call, the same each time, by a client that cannot be asked."""
        self.callers += 1
        client = Client(self, "2025-11-25", None, "deep-research")
        return self.world.answerers.submit(client.call, "deep_research", RESEARCH, LIMIT)

    def work(self):
        # A held call is run by the server of its caller.
        return self.ask()

    def other_answer(self):
        return "no" if self.decision == "yes" else "yes"

    def try_to_answer(self):
        if self.decision == "deadline" or not self.question():
            return None
        self.is_approved = self.is_approved or self.decision == "yes"
        return self.answer(self.decision)

    def look(self):
        calls = self.world.calls()["lanes"].get(self.lane, {})
        if not self.is_approved and (len(calls.get("model", {})) > 1 or calls.get("search")):
            self.problem(f"more than the plan was asked for without an approval ({self.decision}): {calls}")

    def finish(self):
        expected = "succeeded" if self.decision == "yes" else "cancelled"
        if self.decision == "deadline":
            self.pass_deadline()
        while self.may_go_on():
            self.reap()
            if self.job()[1] in OPEN_STATES and not self.has_worker():
                self.work()
            self.look()
            if self.decision != "deadline" and self.await_question(1):
                attempt = self.try_to_answer()
                if attempt:
                    attempt.result(timeout=LIMIT)
            state = self.wait(1)
            if state == expected:
                return
            if state not in OPEN_STATES:
                break
        self.problem(f"is {self.job()} and not {expected}, with the question {self.question()}")

    def pass_deadline(self):
        """Sets the clocks 25 hours ahead, once the question is asked."""
        while not self.await_question(1) and self.may_go_on():
            self.reap()
            if not self.has_worker():
                self.work()
        for kind in ("worker", "server"):
            for pid in self.processes()[kind]:
                os.kill(pid, signal.SIGKILL)
        self.world.pause(lambda: not self.has_worker())
        (self.folder / "shift").write_text(str(25 * 60 * 60 * 1000))
        self.spawn("serve", "--no-detach", "--tools", "deep-research", "--clock-file", str(self.folder / "shift"))

    def check(self):
        self.look()
        job, _ = self.job()
        if self.decision == "yes":
            jobs = self.read("SELECT count(*) FROM jobs")[0][0]
            if jobs != 1:
                self.problem(f"{self.callers} identical calls have {jobs} jobs")
            shown = json.loads(self.outlast("jobs", "show", job, "--json").stdout)
            if "## Summary" not in shown["output"]["body"]["text"]:
                self.problem("the report is not whole")
        if "accepted" in self.attempts.get(self.other_answer(), set()):
            self.problem(f"a second answer was accepted after {self.decision}")


class World:
    def __init__(self, outlast, simulator, seed, parallel):
        self.outlast, self.seed = outlast, seed
        self.folder = Path(tempfile.mkdtemp(prefix="outlast-question-kills-"))
        self.simulator = subprocess.Popen([simulator], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = json.loads(self.simulator.stdout.readline())["url"]
        self.answerers = concurrent.futures.ThreadPoolExecutor(16 * parallel)

    def calls(self):
        with urllib.request.urlopen(f"{self.url}/__sim/calls") as answer:
            return json.load(answer)

    @staticmethod
    def pause(is_over):
        until = time.monotonic() + LIMIT
        while not is_over() and time.monotonic() < until:
            time.sleep(0.02)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--outlast", required=True)
    parser.add_argument("--simulator", required=True)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--parallel", type=int, default=4)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else random.randrange(1 << 31)
    print(f"seed {seed}", flush=True)
    world = World(str(Path(given.outlast).resolve()), given.simulator, seed, given.parallel)
    numbers, lock = iter(range(1, 1 << 31)), threading.Lock()
    counts, problems, kills = collections.Counter(), [], 0

    def disturb():
        nonlocal kills, counts
        while True:
            with lock:
                left, number = given.kills - kills, next(numbers)
            if left <= 0 or problems:
                return
            chain = (Approval if number % 4 == 0 else Script)(world, number)
            hits = chain.disturb(min(1 + chain.random.randrange(6), left))
            with lock:
                kills += hits
                counts += chain.counts
                problems.extend(chain.problems)
                if not chain.problems:
                    shutil.rmtree(chain.folder, ignore_errors=True)
                if number % 50 == 0:
                    print(f"after {kills} kills", file=sys.stderr, flush=True)

    threads = [threading.Thread(target=disturb) for _ in range(given.parallel)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        world.simulator.kill()
    for name, count in sorted(counts.items()):
        print(f"{count:>6} {name}")
    for problem in problems[:20]:
        print(f"PROBLEM {problem}")
    sys.stdout.flush()
    if problems:
        print(f"the stores are kept: {world.folder}", file=sys.stderr)
        os._exit(1)
    shutil.rmtree(world.folder, ignore_errors=True)
    print(f"held: {kills} kills, every question answered once, and nothing paid for before a yes", flush=True)
    os._exit(0)


main()
