"""The figures as a document, a picture and the README's table. Nothing in them is typed by hand."""

import datetime
import os
import platform
import re
import subprocess
from pathlib import Path

BLOCKING = ["outlast", "outlast, one process", "vendor's server", "bare SDK", "FastMCP"]
JOBS = ["outlast", "outlast, one process", "outlast, PostgreSQL", "FastMCP tasks", "FastMCP tasks, Redis"]
ALL = ["outlast", "outlast, one process", "outlast, PostgreSQL", "vendor's server", "bare SDK", "FastMCP", "FastMCP tasks", "FastMCP tasks, Redis"]
# What the picture and the README show: words, key, place in it, unit, whether more is better.
SHOWN = [
    ("start to tools/list", "start", None, "ms", False),
    ("memory, idle", "idle", None, "MB", False),
    ("a call in large chunks, p50", "call_large", 0, "ms", False),
    ("a call in small events, p50", "call_small", 0, "ms", False),
    ("processor time of a call in large chunks", "call_cpu_large", None, "ms", False),
    ("processor time of a call in small events", "call_cpu_small", None, "ms", False),
    ("calls a second in large chunks, 32 callers", "pace_large", None, "/s", True),
    ("calls a second in small events, 32 callers", "pace_small", None, "/s", True),
    ("1,000 jobs of 5 s", "storm", 0, "s", False),
    ("memory for those", "storm", 1, "MB", False),
    ("installed, runtime not counted", "size", None, "MB", False),
]
README_COLUMNS = ["outlast", "vendor's server", "bare SDK", "FastMCP"]


def megabytes(paths):
    total = 0
    for path in paths:
        files = [path] if path.is_file() else path.rglob("*")
        total += sum(file.lstat().st_size for file in files if file.is_file() and "__pycache__" not in file.parts)
    return total / 1e6


def number(value):
    if value is None:
        return "-"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def pick(figures, name, key, place=None):
    value = figures[name].get(key)
    return value if place is None or value is None else value[place]


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def compared(figures, columns, shown, against=None):
    """One row for each thing, one column for each contender, and what ours is of `against`."""
    rows = []
    for words, key, place, unit, _ in shown:
        values = [pick(figures, name, key, place) for name in columns]
        row = [f"{words}, {unit}" if unit else words, *map(number, values)]
        if against:
            other = pick(figures, against, key, place)
            row.append(f"{values[0] / other:.2f}" if other and values[0] else "-")
        rows.append(row)
    return table(["", *columns, *([f"outlast / {against}"] if against else [])], rows)


def killed(figures, names):
    rows = []
    for name in names:
        lost, took, again = figures[name]["killed"]
        answered, paid = figures[name]["capped"]
        rows.append(
            [
                name,
                f"{lost} of 20",
                f"{took:.1f} s" if took else "-",
                str(again),
                f"after {answered:.1f} s" if answered else "never",
                str(paid),
            ]
        )
    head = ["", "lost by SIGKILL", "all ended after", "runs paid again", "capped client answered", "runs paid"]
    return table(head, rows)


def machine():
    info = Path("/proc/cpuinfo").read_text()
    model = (re.search(r"model name\s*:\s*(.+)", info) or ["", platform.machine()])[1]
    memory = int(re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())[1]) / 1e6
    return f"{os.cpu_count()} cores ({model}), {memory:.0f} GB, Linux {platform.release().split('-')[0]}"


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def text(figures, queues):
    commit = said("git", "rev-parse", "--short", "HEAD")
    first = [
        ("start to tools/list", "start", None, "ms", False),
        ("processor time of a start", "start_cpu", None, "ms", False),
        ("memory, idle", "idle", None, "MB", False),
        ("memory after 100 calls or jobs", "used", None, "MB", False),
        ("a call in large chunks, p50", "call_large", 0, "ms", False),
        ("a call in large chunks, p99", "call_large", 1, "ms", False),
        ("a call in small events, p50", "call_small", 0, "ms", False),
        ("a call in small events, p99", "call_small", 1, "ms", False),
        ("processor time of a call in large chunks", "call_cpu_large", None, "ms", False),
        ("processor time of a call in small events", "call_cpu_small", None, "ms", False),
        ("calls a second in large chunks, 32 callers", "pace_large", None, "", True),
        ("calls a second in small events, 32 callers", "pace_small", None, "", True),
        ("installed, runtime not counted", "size", None, "MB", False),
    ]
    jobs = [
        ("start of a job, p50", "job_start", 0, "ms", False),
        ("start of a job, p99", "job_start", 1, "ms", False),
        ("provider's end to answer, p50", "wake", 0, "ms", False),
        ("provider's end to answer, p99", "wake", 1, "ms", False),
        ("the same in another process, p50", "wake_other", 0, "ms", False),
        ("the same in another process, p99", "wake_other", 1, "ms", False),
        ("the same, asked every 50 ms, p50", "wake_often", 0, "ms", False),
        ("the same, asked every 50 ms, p99", "wake_often", 1, "ms", False),
        ("memory, idle", "idle", None, "MB", False),
        ("memory after 100 calls or jobs", "used", None, "MB", False),
    ]
    many = [
        ("ended well", "storm_done", None, "", True),
        ("all ended after", "storm", 0, "s", False),
        ("most memory", "storm", 1, "MB", False),
        ("processor time", "storm", 2, "s", False),
        ("beyond the provider's 5 s, p50", "storm_over", 0, "ms", False),
        ("beyond the provider's 5 s, p99", "storm_over", 1, "ms", False),
    ]
    return f"""# Benchmarks

Made by `scripts/bench peers` on {datetime.date.today()} at commit {commit}: {machine()}. All contenders ask the same simulated provider, in turns,
in one run; a driver in Python (bench/peers) speaks to each over a pipe and shares the two cores with it. Reports have about 30 kB. FastMCP's and the bare SDK's
servers are the shortest that do the work (interop/peers). "outlast" is measured as `outlast init` sets it up: its server leaves jobs to a detached
worker, and the figures are of both processes. A provider sends its report in four large chunks, or in small events of five words. The vendor's server, FastMCP and the SDK have the versions pinned there.

![outlast beside its peers](benchmarks.svg)

## A call that the provider answers at once

outlast keeps each call on disk before it asks and after it is answered; the others keep nothing.

{compared(figures, BLOCKING, first, "vendor's server")}

## Jobs

A client of FastMCP asks every five seconds, because the server says so; of its figures asked every 50 ms the price is not shown. The memory of Redis and
PostgreSQL is not counted.

{compared(figures, JOBS, jobs)}

## A thousand jobs of five seconds at once

Each is set up for 1,000 at a time. The vendor's server, the bare SDK and FastMCP know no jobs: they hold 1,000 calls.

{compared(figures, ALL, many)}

## When a server is killed, and when a client is impatient

SIGKILL one second after the last of 20 jobs of 8 s was begun, then the next server. FastMCP's redelivery is set to 10 s (its default is 300 s). The impatient client gives up on every
request after 3 s and asks again, five times at most; the work takes 6 s.

{killed(figures, ALL)}

## Queues on PostgreSQL

{queues.strip()}
"""


COLOURS = {"outlast": "#2563a8", "vendor's server": "#9aa3ad", "bare SDK": "#b9c0c7", "FastMCP": "#d3d8dd"}


def plot(figures):
    """A group of bars for each thing shown, each group to its own scale."""
    bar, gap, left, width = 14, 26, 290, 420
    parts, y = [], 34
    for words, key, place, unit, more in SHOWN:
        values = {name: pick(figures, name, key, place) for name in README_COLUMNS}
        most = max(value for value in values.values() if value)
        better = "more is better" if more else "less is better"
        parts.append(f'<text x="{left - 12}" y="{y + 26}" text-anchor="end" class="what">{words}</text>')
        parts.append(f'<text x="{left - 12}" y="{y + 42}" text-anchor="end" class="small">{better}</text>')
        for name, value in values.items():
            if value is not None:
                length = max(1.5, value / most * width)
                parts.append(f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{bar}" fill="{COLOURS[name]}"/>')
                parts.append(f'<text x="{left + length + 6:.1f}" y="{y + 11}" class="small">{number(value)} {unit}</text>')
            y += bar + 2
        y += gap
    x = left
    legend = []
    for name, colour in COLOURS.items():
        legend.append(f'<rect x="{x}" y="8" width="12" height="12" fill="{colour}"/><text x="{x + 17}" y="18" class="small">{name}</text>')
        x += 30 + 8 * len(name)
    style = "text{font-family:sans-serif;fill:#1c2733}.what{font-size:13px}.small{font-size:11px;fill:#4b5763}"
    body = "\n".join(legend + parts)
    total = left + width + 90
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {y}" width="{total}" height="{y}" role="img" '
        f'aria-label="outlast beside its peers"><style>{style}</style><rect width="100%" height="100%" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


LISTS = "## Lists of a million jobs"


def write(figures, queues, docs, readme):
    made = text(figures, queues)
    if docs is None:
        print(made)
        return
    # What scripts/lists measured stays: it is not of this run.
    present = (docs / "benchmarks.md").read_text()
    at = present.find(LISTS)
    (docs / "benchmarks.md").write_text(made + ("\n" + present[at:] if at >= 0 else ""))
    (docs / "benchmarks.svg").write_text(plot(figures))
    if readme:
        begin, end = "<!-- begin benchmarks -->", "<!-- end benchmarks -->"
        before, rest = readme.read_text().split(begin)
        stories = ["outlast", "vendor's server", "bare SDK", "FastMCP tasks", "FastMCP tasks, Redis"]
        short = compared(figures, README_COLUMNS, SHOWN, "vendor's server") + "\n\n" + killed(figures, stories)
        readme.write_text(f"{before}{begin}\n{short}\n{end}{rest.split(end)[1]}")
