"""Asks every question and compares the first source of each answer with the places that answer the question."""

import argparse
import json
import os
import re
import subprocess
import sys

TUNING = ["click", "commander", "fastify", "jinja2", "ripgrep"]
WEAK = ["No passage has all of the question", "is only loosely related", "Nothing in the library answers", "has no words to search for"]
OUTCOMES = ["right", "doubted", "weak", "nothing", "misleading"]


def plain(heading):
    """A heading as a reader sees it: without marks of code, links and tags."""
    heading = re.sub(r"<[^>]*>", "", heading)
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[`*_\s]", "", heading.replace("\\", "")).lower()


def places(text):
    for place in text.split(" | "):
        file, rest = place.split("#", 1)
        heading, _, said = rest.partition("@")
        yield file, heading, said


def check(corpus, asked):
    """Every place must be in the documents, or the question counts for nothing."""
    for package, question, expected in asked:
        for file, heading, said in expected:
            path = os.path.join(corpus, package, file)
            text = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
            headings = [plain(line.strip("# ")) for line in text.splitlines()]
            if said not in text or heading != "*" and plain(heading) not in headings:
                sys.exit(f"error: no {file}#{heading}@{said} in {package}, for: {question}")


def ask(options, package, question):
    data = os.path.join(options.data, package)
    command = [options.binary, "--data-dir", data, "--no-mirror", "research", "--library"]
    command += [os.path.join(options.corpus, package), "--json", question]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(answer.stdout)["output"]["body"]


def answers(place, report):
    file, heading, said = place
    source = report["sources"][0]
    first = report["text"].split("## Best passages")[-1].split("[1]")[0]
    above = [plain(part) for part in source["title"].split(" › ")]
    # A text narrows a place down, so that the heading may be further above.
    above = above if said else above[-1:]
    return (
        source["url"].rsplit(":", 1)[0] == file
        and (heading == "*" or plain(heading) in above)
        and said in first
    )


def outcome(report, expected):
    is_weak = any(sentence in report["text"] for sentence in WEAK)
    if not report["sources"]:
        return "nothing"
    if any(answers(place, report) for place in expected):
        return "doubted" if is_weak else "right"
    return "weak" if is_weak else "misleading"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-v", action="store_true", help="print the misses of the tuning half")
    parser.add_argument("--held-out-misses", action="store_true", help="print those of the held-out half too")
    parser.add_argument("--at-least", type=int, default=0, help="fail below this many right answers of the held-out half")
    parser.add_argument("binary")
    parser.add_argument("corpus")
    parser.add_argument("questions")
    parser.add_argument("data")
    options = parser.parse_args()
    lines = [line.rstrip("\n").split("\t") for line in open(options.questions) if not line.startswith("#")]
    asked = [(package, question, list(places(expected))) for package, question, expected in lines]
    check(options.corpus, asked)
    counts = {}
    lengths = []
    for package, question, expected in asked:
        report = ask(options, package, question)
        lengths.append(len(report["text"].splitlines()))
        result = outcome(report, expected)
        counts.setdefault(package, dict.fromkeys(OUTCOMES, 0))[result] += 1
        if result not in ("right", "doubted") and (options.v and package in TUNING or options.held_out_misses):
            got = " ".join(f"{source['url']} ({source['title']})" for source in report["sources"][:2]) or "-"
            print(f"{result}: {package}: {question}\n  wanted {expected}\n  got    {got}")
    # Doubted: right, but marked as weak.
    print(f"{'':12}{'right':>8}{'doubted':>9}{'weak':>8}{'nothing':>9}{'misleading':>12}   of")
    right = {}
    for half, chosen in [("tuning", TUNING), ("held out", [name for name in counts if name not in TUNING])]:
        sums = {name: sum(counts[package][name] for package in chosen) for name in OUTCOMES}
        for name, row in [*((package, counts[package]) for package in chosen), (half, sums)]:
            total = sum(row.values())
            print(f"{name:12}{row['right']:8}{row['doubted']:9}{row['weak']:8}{row['nothing']:9}{row['misleading']:12}{total:5}")
        right[half] = sums["right"] + sums["doubted"]
    lengths.sort()
    print(f"lines of a report: {lengths[len(lengths) // 2]} in the middle, {lengths[-1]} at most")
    sys.exit(right["held out"] < options.at_least)


main()
