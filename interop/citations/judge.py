"""Runs claims through the comparison and prints precision and recall of each verdict with 95 % intervals.

judge.py BINARY LIBRARY WHEEL REGISTRY [--half tune|held|both] [--show N]: BINARY is the example judge_claims, LIBRARY a folder with the
packages, WHEEL that of mendeleev, REGISTRY cargo's sources. Documents are split by a hash of their name; the held-out half is not looked at while
the rules are written."""

import argparse
import collections
import hashlib
import json
import math
import subprocess
import sys
from pathlib import Path

import generated


def half_of(name):
    return "held" if hashlib.sha256(name.encode()).digest()[0] & 1 else "tune"


def interval(good, all_):
    """Wilson's interval."""
    if not all_:
        return (0.0, 1.0)
    z, p = 1.96, good / all_
    middle, spread = p + z * z / (2 * all_), z * math.sqrt(p * (1 - p) / all_ + z * z / (4 * all_ * all_))
    return ((middle - spread) / (1 + z * z / all_), (middle + spread) / (1 + z * z / all_))


def line(name, good, all_):
    low, high = interval(good, all_)
    share = good / all_ if all_ else float("nan")
    print(f"  {name:44} {share:6.3f}  [{low:.3f}, {high:.3f}]  {good} of {all_}")
    return share


def kappa(pairs):
    """Cohen's kappa of two readers."""
    both = sum(a == b for a, b in pairs) / len(pairs)
    first, second = (collections.Counter(pair[side] for pair in pairs) for side in (0, 1))
    chance = sum(first[label] * second[label] for label in first) / len(pairs) ** 2
    return 1.0 if chance == 1 else (both - chance) / (1 - chance)


def judge(binary, tasks):
    lines = "".join(json.dumps({"type": kind, "page": page, "claims": [claim["text"] for claim in claims]}) + "\n" for kind, page, claims in tasks)
    done = subprocess.run([binary], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(answer) for answer in done.stdout.splitlines()]


def report_generated(results, show):
    print(f"generated claims: {len(results)}")
    by = lambda verdict: [r for r in results if r["verdict"] == verdict]
    allowed = {"supported": {"supported", "both"}}
    goals = {}
    supported = by("supported")
    goals["supported precision"] = line("supported: precision", sum(r["label"] in allowed["supported"] for r in supported), len(supported))
    true = [r for r in results if r["label"] == "supported"]
    line("supported: recall", sum(r["verdict"] == "supported" for r in true), len(true))
    altered = [r for r in results if r["label"] == "altered"]
    found = lambda r: r["verdict"] == "differs" or (r["verdict"] in ("partly", "not_found") and bool(r["missing"]))
    goals["altered found"] = line("altered numbers and names: found or named", sum(map(found, altered)), len(altered))
    differs = by("differs")
    line("differs: precision", sum(r["label"] == "altered" for r in differs), len(differs))
    numbers = [r for r in altered if r["altered"] == "number"]
    line("differs: recall (altered numbers)", sum(r["verdict"] == "differs" for r in numbers), len(numbers))
    missing = by("not_found")
    line("not_found: precision", sum(r["label"] == "altered" for r in missing), len(missing))
    lowered = [r for r in results if r["label"] == "lowered"]
    line("reversed or negated: not supported", sum(r["verdict"] != "supported" for r in lowered), len(lowered))
    partly = by("partly")
    line("partly: precision", sum(r["label"] in ("altered", "lowered", "both") for r in partly), len(partly))
    wrong = [r for r in results if (r["label"] == "supported") != (r["verdict"] == "supported") and r["label"] != "both" and not (r["label"] in ("altered", "lowered") and r["verdict"] != "supported")]
    counts = collections.Counter((r["kind"], r["mutation"], r["label"], r["verdict"]) for r in wrong)
    for key, count in counts.most_common(show):
        example = next(r for r in wrong if (r["kind"], r["mutation"], r["label"], r["verdict"]) == key)
        print(f"    {count:4} {' / '.join(key)}: {example['text']} | missing {example['missing']} | found {example['found']} | {(example['passage'] or '')[:160]}")
    return goals


def report_natural(results, show):
    print(f"natural claims: {len(results)}")
    goals = {}
    for verdict in ("supported", "partly", "differs", "not_found", "no_facts"):
        given = [r for r in results if r["verdict"] == verdict]
        true = [r for r in results if r["label"] == verdict]
        share = line(f"{verdict}: precision", sum(r["label"] == verdict for r in given), len(given))
        line(f"{verdict}: recall", sum(r["verdict"] == verdict for r in true), len(true))
        goals[f"natural {verdict} precision"] = share
    for r in [r for r in results if r["label"] != r["verdict"]][:show]:
        print(f"    {r['label']} -> {r['verdict']}: {r['text']} | missing {r['missing']} | found {r['found']} | {(r['passage'] or '')[:160]}")
    return goals


def run(binary, documents, half):
    tasks, claims = [], []
    for name, kind, media_type, page, own in documents:
        if half != "both" and half_of(name) != half:
            continue
        own = [claim for claim in own if claim["label"] != "skip"]
        tasks.append((media_type, page, own))
        claims.append((kind, own))
    results = []
    for (kind, own), answers in zip(claims, judge(binary, tasks), strict=True):
        for claim, answer in zip(own, answers, strict=True):
            passage = (answer.get("passage") or {}).get("text")
            results.append({**claim, "kind": kind, "verdict": answer["verdict"], "missing": answer.get("missing", []), "found": answer.get("found"), "passage": passage, "reason": answer.get("reason")})
    return results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("library", type=Path)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("registry", type=Path)
    parser.add_argument("--half", choices=["tune", "held", "both"], default="held")
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--check", action="store_true", help="exit 1 if a goal of J6 is missed")
    args = parser.parse_args()
    made = ((d.name, d.kind, *d.page(), d.claims) for d in generated.documents(args.library, args.wheel))
    print(f"half: {args.half}")
    results = run(args.binary, made, args.half)
    goals = report_generated(results, args.show)
    natural = Path(__file__).with_name("natural.json")
    if natural.exists():
        pages = json.loads(natural.read_text())
        folder = lambda page: args.registry / f"{page['package']}-{page['version']}" / page["file"]
        media_type = lambda page: {".md": "text/markdown", ".html": "text/html; charset=utf-8"}.get(Path(page["file"]).suffix, "text/plain")
        documents = ((f"{p['package']} {p['file']}", "natural", media_type(p), folder(p).read_text(), p["claims"]) for p in pages)
        claims = [claim for page in pages for claim in page["claims"]]
        readings = [(claim.get("first", claim["label"]), claim.get("second", claim["label"])) for claim in claims]
        agreed = sum(a == b for a, b in readings)
        print(f"two readings of {len(readings)} natural claims: {agreed} agree, Cohen's kappa {kappa(readings):.3f}")
        goals |= report_natural(run(args.binary, documents, args.half), args.show)
    wanted = {"supported precision": 0.97, "altered found": 0.95, "natural supported precision": 0.90, "natural not_found precision": 0.90}
    missed = [name for name, goal in wanted.items() if name in goals and not goals[name] >= goal]
    for name in missed:
        print(f"goal missed: {name} {goals[name]:.3f} < {wanted[name]}")
    sys.exit(bool(missed) and args.check)


main()
