"""Kills checks of citations with kill -9 at random moments, and looks at what is left (J1).

What must hold, whatever was killed and when:
- a source whose step was recorded is never fetched again;
- no check is lost: each ends with the verdicts of all its sources, and the store has one job for it;
- at the end the store is sound.

Half of the checks run in the command itself, half in a background worker. The killed process is the one that runs the check.
"""

import argparse
import collections
import hashlib
import http.server
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

SOURCES = 12
LIMIT = 60
# A page answers after this many seconds, so that kills fall into all parts of a check.
ANSWER = 0.03
PAGE = b"<title>Lakes</title><p>Lake Vostok has an area of 12,513 km2 and is 250 km long.</p>"


class Web(http.server.ThreadingHTTPServer):
    """A web on the addresses of loopback, which counts what is fetched."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("0.0.0.0", 0), Handler)
        self.asked = collections.Counter()
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, address):
        pass  # The client was killed.


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with self.server.lock:
            self.server.asked[self.path] += 1
        time.sleep(ANSWER)
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_):
        pass


class World:
    def __init__(self, outlast, seed):
        self.outlast, self.random = outlast, random.Random(seed)
        self.folder = Path(tempfile.mkdtemp(prefix="outlast-check-kills-"))
        self.store = self.folder / "data/outlast.db"
        self.web = Web()
        self.problems, self.counts, self.last = [], collections.Counter(), 0
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "OUTLAST_DATA_DIR": str(self.folder / "data"),
            "OUTLAST_CITATIONS_ALLOW_PRIVATE": "true",
            "OUTLAST_TEST_WORKER_IDLE_MS": "1000",
            "NO_PROXY": "*",
        }

    def start(self, *arguments):
        pipes = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return subprocess.Popen([self.outlast, *arguments], env=self.environment, text=True, **pipes)

    def run(self, *arguments):
        started = self.start(*arguments)
        out, err = started.communicate(timeout=LIMIT)
        return started.returncode, out, err

    def url(self, n, source):
        return f"http://127.0.0.{source + 1}:{self.web.server_port}/{n}/{source}"

    def document(self, n):
        urls = [self.url(n, source) for source in range(SOURCES)]
        claims = "".join(f"Lake Vostok is 250 km long [{at + 1}].\n\n" for at in range(SOURCES))
        listed = "".join(f"{at + 1}. Lake <{url}>\n" for at, url in enumerate(urls))
        file = self.folder / f"{n}.md"
        file.write_text(f"{claims}## Sources\n\n{listed}")
        return file, urls

    def workers(self):
        """The background workers of this world."""
        mark = str(self.folder).encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    line = (entry / "cmdline").read_bytes()
                    if b"--detached" in line and (mark in line or mark in (entry / "environ").read_bytes()):
                        yield int(entry.name)
                except OSError:
                    pass

    def read(self, query, *arguments):
        if not self.store.exists():
            return []
        store = sqlite3.connect(f"file:{self.store}?mode=ro", uri=True)
        try:
            return store.execute(query, arguments).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return []  # It was killed while it created the store.
            raise
        finally:
            store.close()

    def recorded(self, urls):
        """The addresses whose step is recorded with its answer."""
        keys = {f"read:{hashlib.sha256(url.encode()).digest()[:16].hex()}": url for url in urls}
        rows = self.read("SELECT key FROM steps WHERE state = 'done'")
        return {keys[key] for (key,) in rows if key in keys}

    def job(self):
        """The id and the state of the newest job, if it is another one than that of the last check."""
        for seq, job, state in self.read("SELECT seq, id, state FROM jobs ORDER BY seq DESC LIMIT 1"):
            if seq > self.last:
                return job, state, seq
        return None, "", self.last

    def check(self, n, kills):
        """Checks a document, and kills the process that does it this many times. Returns the number of kills that hit."""
        file, urls = self.document(n)
        in_background, known, hits = n % 2 == 1, {}, 0
        for _ in range(kills):
            hits += self.kill_one(file, in_background)
            for url in self.recorded(urls) - known.keys():
                known[url] = self.asked(url)
            if self.job()[1] == "succeeded":
                break  # The same command would begin another check.
        code, out, err = self.run("check", self.job()[0] or str(file), "--json")
        _, _, last = self.job()
        if last != self.last + 1:
            self.problems.append(f"check {n} has {last - self.last} jobs")
        self.last = last
        self.counts["checks"] += 1
        self.counts["steps that outlived a kill"] += len(known)
        try:
            check = json.loads(out)
        except ValueError:
            self.problems.append(f"check {n} is lost: {code} {out} {err}")
            return hits
        if check["totals"]["supported"] != SOURCES or not check["complete"]:
            self.problems.append(f"check {n}: {check}")
        for url, before in known.items():
            if self.asked(url) != before:
                self.problems.append(f"check {n}: {url} was recorded and fetched again")
        return hits

    def asked(self, url):
        with self.web.lock:
            return self.web.asked["/" + url.split("/", 3)[3]]

    def kill_one(self, file, in_background):
        at = self.random.uniform(0.0, 0.25)
        if in_background:
            self.run("check", str(file), "--detach")
            time.sleep(at)
            found = list(self.workers())
            for pid in found:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self.counts["kills of a background worker"] += len(found)
            self.settle(found)
            return len(found)
        doomed = self.start("check", str(file), "--json")
        time.sleep(at)
        was_running = doomed.poll() is None
        doomed.kill()
        doomed.communicate()
        self.counts["kills of the command"] += was_running
        return int(was_running)

    def settle(self, pids):
        """Waits until killed processes are gone, so that nothing is fetched between two looks."""
        until = time.monotonic() + LIMIT
        while any(Path(f"/proc/{pid}/exe").exists() for pid in pids) and time.monotonic() < until:
            time.sleep(0.005)

    def finish(self):
        code, out, err = self.run("store", "check")
        if code != 0:
            self.problems.append(f"the store is damaged: {out} {err}")
        code, out, _ = self.run("jobs", "list", "--all", "--limit", "100", "--json")
        states = collections.Counter(job["state"] for job in json.loads(out)["jobs"])
        if set(states) - {"succeeded"}:
            self.problems.append(f"jobs that did not succeed: {states}")
        for pid in self.workers():
            os.kill(pid, signal.SIGTERM)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--outlast", required=True)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else random.randrange(1 << 31)
    print(f"seed {seed}", flush=True)
    world = World(given.outlast, seed)
    kills = n = 0
    while kills < given.kills and not world.problems:
        kills += world.check(n, min(1 + world.random.randrange(4), given.kills - kills))
        n += 1
        if n % 50 == 0:
            print(f"after {kills} kills", file=sys.stderr, flush=True)
    world.finish()
    for name, count in sorted(world.counts.items()):
        print(f"{count:>6} {name}")
    for problem in world.problems[:20]:
        print(f"PROBLEM {problem}")
    if world.problems:
        print(f"the store is kept: {world.store}", file=sys.stderr)
        sys.exit(1)
    shutil.rmtree(world.folder, ignore_errors=True)
    print(f"held: {kills} kills, no recorded source fetched again, no check lost")


main()
