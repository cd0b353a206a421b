"""Asks every question and holds the sources of the answer, in their order, against the places that answer it."""

import argparse
import json
import subprocess
import sys


def places(text):
    for place in text.split(","):
        file, lines = place.rsplit(":", 1)
        first, last = lines.split("-")
        yield file, int(first), int(last)


def ask(binary, corpus, data, question):
    command = [binary, "--data-dir", data, "--no-mirror", "research", "--library", corpus, "--json", question]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(answer.stdout)["output"]["body"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-v", action="store_true", help="print the misses")
    parser.add_argument("--at-least", type=int, default=0, help="fail below so many first places")
    parser.add_argument("binary")
    parser.add_argument("corpus")
    parser.add_argument("questions")
    parser.add_argument("data")
    options = parser.parse_args()
    asked = [line.rstrip("\n").split("\t") for line in open(options.questions) if not line.startswith("#")]
    hits = {"line@1": 0, "line@3": 0, "file@1": 0, "file@3": 0}
    lines = []
    for expected, question in asked:
        report = ask(options.binary, options.corpus, options.data, question)
        found = [source["url"].rsplit(":", 1) for source in report["sources"]]
        right_lines = [any(file == name and first <= int(line) <= last for name, first, last in places(expected)) for file, line in found]
        right_files = [any(file == name for name, _, _ in places(expected)) for file, _ in found]
        for name, right in [("line", right_lines), ("file", right_files)]:
            hits[f"{name}@1"] += any(right[:1])
            hits[f"{name}@3"] += any(right[:3])
        lines.append(len(report["text"].splitlines()))
        if options.v and not any(right_lines[:1]):
            got = " ".join(":".join(source) for source in found[:3]) or "nothing"
            print(f"missed: {question}\n  wanted {expected}\n  got    {got}")
    for name, count in hits.items():
        what, first = name.split("@")
        print(f"the right {what} {'first' if first == '1' else 'among the first three'}: {count} of {len(asked)}")
    lines.sort()
    print(f"lines of a report: {lines[len(lines) // 2]} in the middle, {lines[-1]} at most")
    sys.exit(hits["line@1"] < options.at_least)


main()
