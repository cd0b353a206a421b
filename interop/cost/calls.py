"""What a held call costs in the mode that users install: a server that leaves its jobs to a detached worker, on SQLite.

Pages and commits are read from the write-ahead log after each call, without a tracer. System calls are counted by strace in a second run,
because tracing makes a call slower. The figures are lower quartiles of calls one after the other: a busy machine adds writes of progress."""

import argparse
import json
import os
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import quantiles

CALLS = "pwrite64,pread64,fsync,fdatasync,futex"
# 30 kB in a few large events, and in one event for five words.
STREAMS = {"large chunks": "ok;words=4500;chunks=4;delay_ms=0", "small events": "ok;words=4500;delay_ms=0"}
MARK = "OUTLAST_CALL_COST"
TRACED = re.compile(r"^\d+ +(\w+)\(")
# The words of the first reports are indexed two seconds after their commits.
REST = 3.5


class Log:
    """The write-ahead log of a store: the frames that were appended since the last look, and the pages in them."""

    def __init__(self, path):
        self.path = path
        self.salt = None
        self.read = 0
        self.commits = 0
        self.pages = Counter()

    def look(self):
        data = self.path.read_bytes() if self.path.exists() else b""
        if len(data) < 32:
            return
        size, salt = struct.unpack(">I", data[8:12])[0], data[16:24]
        if salt != self.salt:
            self.salt, self.read = salt, 0
        at = 32 + self.read * (size + 24)
        # The rest of the file may be frames of an earlier log, which have other salts.
        while at + 24 + size <= len(data) and data[at + 8 : at + 16] == salt:
            page, in_database = struct.unpack(">II", data[at : at + 8])
            self.pages[page] += 1
            self.commits += in_database > 0
            self.read += 1
            at += size + 24


class Server:
    """A server as `outlast init` sets it up, and its detached worker."""

    def __init__(self, outlast, provider, folder, traced=None):
        self.mark = f"{MARK}={folder}"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "OUTLAST_DATA_DIR": folder,
            "OUTLAST_TOOLS": "perplexity",
            "OUTLAST_LOG": "warn",
            "OUTLAST_MAX_JOBS_PER_OWNER": "1000000",
            "PERPLEXITY_BASE_URL": provider,
            "PERPLEXITY_API_KEY": "pplx-cost",
            MARK: folder,
        }
        tracer = ["strace", "-f", "--seccomp-bpf", "-s", "0", "-e", f"trace={CALLS}", "-e", "signal=none", "-o", traced]
        command = (tracer if traced else []) + [outlast, "serve"]
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.last = 0
        info = {"name": "cost", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info})
        self.write({"method": "notifications/initialized"})

    def write(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        self.last += 1
        self.write({"id": self.last, "method": method, "params": params})
        while line := self.process.stdout.readline():
            answer = json.loads(line)
            if answer.get("id") == self.last:
                return answer
        raise RuntimeError("the server ended before it answered")

    def research(self, scenario):
        message = {"role": "user", "content": f"Why {self.last}? [[sim:{scenario}]]"}
        answer = self.ask("tools/call", {"name": "perplexity_research", "arguments": {"messages": [message]}, "_meta": {"progressToken": self.last}})
        text = json.dumps(answer)
        if '"isError": true' in text or len(text) < 20_000:
            raise RuntimeError(f"not a report: {text[:400]}")

    def pids(self):
        for found in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (found / "environ").read_bytes().split(b"\0"):
                    yield int(found.name)
            except OSError:
                pass

    def close(self):
        self.process.stdin.close()
        for pid in list(self.pids()):
            if pid != self.process.pid:
                os.kill(pid, signal.SIGTERM)
        self.process.wait(30)
        self.process.stdout.close()
        # The worker is not a child of this process.
        until = time.monotonic() + 30
        while list(self.pids()) and time.monotonic() < until:
            time.sleep(0.05)


def usual(counts):
    return quantiles(counts, n=4, method="inclusive")[0]


def tables(database):
    """The table or index of each page."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    return dict(connection.execute("SELECT pageno, name FROM dbstat"))


def pages_and_commits(options, provider, scenario):
    folder = tempfile.mkdtemp(prefix="outlast-cost-")
    server = Server(options.outlast, provider, folder)
    for _ in range(options.warm):
        server.research(scenario)
    time.sleep(REST)
    log = Log(Path(folder) / "outlast.db-wal")
    log.look()
    log.pages.clear()
    log.commits = 0
    pages, commits = [], []
    for _ in range(options.calls):
        written, committed = sum(log.pages.values()), log.commits
        server.research(scenario)
        log.look()
        pages.append(sum(log.pages.values()) - written)
        commits.append(log.commits - committed)
    names = tables(Path(folder) / "outlast.db") if options.tables else {}
    server.close()
    shutil.rmtree(folder)
    by_table = Counter()
    for page, count in log.pages.items():
        by_table[names.get(page, f"page {page}")] += count
    shares = {name: round(count / options.calls, 1) for name, count in by_table.most_common()}
    return {"commits": usual(commits), "pages": usual(pages)}, shares if options.tables else {}


def system_calls(options, provider, scenario):
    folder = tempfile.mkdtemp(prefix="outlast-cost-")
    trace = Path(folder) / "trace"
    server = Server(options.outlast, provider, folder, trace)
    for _ in range(options.warm):
        server.research(scenario)
    time.sleep(REST)
    ends = [trace.stat().st_size]
    for _ in range(options.calls):
        server.research(scenario)
        ends.append(trace.stat().st_size)
    server.close()
    traced = trace.read_bytes()
    shutil.rmtree(folder)
    counts = [Counter(calls_in(traced[begin:end])) for begin, end in zip(ends, ends[1:])]
    return {name: usual([each[name] for each in counts]) for name in ("pwrite64", "pread64", "fsync", "futex")}


def calls_in(traced):
    """The names of the system calls in a part of a trace."""
    for line in traced.decode(errors="replace").splitlines():
        if found := TRACED.match(line):
            yield found[1].replace("fdatasync", "fsync")


def worse(known, found, tolerance):
    """The figures that grew beyond the tolerance; those that depend on the moment at which threads run are not compared."""
    for stream, before in known.items():
        for name in ("commits", "pages", "fsync"):
            # A traced call may be slow enough to write its progress.
            spare = 1 if name == "fsync" else 0
            if found[stream][name] > before[name] * (1 + tolerance) + spare:
                yield f"{stream}: {name} grew from {before[name]:g} to {found[stream][name]:g} per call"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--outlast", required=True)
    parser.add_argument("--simulator", required=True)
    parser.add_argument("--known", type=Path, required=True)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--tables", action="store_true", help="print the tables of the pages")
    parser.add_argument("--calls", type=int, default=40)
    parser.add_argument("--warm", type=int, default=10)
    parser.add_argument("--tolerance", type=float, default=0.05)
    options = parser.parse_args()
    simulator = subprocess.Popen([options.simulator, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        while not (url := re.search(r"http://127\.0\.0\.1:\d+", simulator.stdout.readline())):
            pass
        figures = {}
        for name, scenario in STREAMS.items():
            pages, by_table = pages_and_commits(options, url[0], scenario)
            figures[name] = {**pages, **system_calls(options, url[0], scenario)}
            print(f"{name}:", ", ".join(f"{value:g} {key}" for key, value in figures[name].items()))
            if by_table:
                print("  pages:", ", ".join(f"{count} {table}" for table, count in by_table.items()))
    finally:
        simulator.kill()
        simulator.wait()
    if options.update:
        options.known.write_text(json.dumps(figures, indent=2) + "\n")
    if options.check:
        found = list(worse(json.loads(options.known.read_text()), figures, options.tolerance))
        for line in found:
            print(f"error: {line}", file=sys.stderr)
        sys.exit(1 if found else 0)


main()
