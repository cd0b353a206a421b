"""Sends a client's recorded greeting to a server, starts research, and runs the command that the answer names for that client.

usage: replay.py OUTLAST GREETING. Prints the client's name and how long after the job the command ended, and fails if the answer
names no command, or if that ends later than a second after the job.
"""

import datetime
import json
import subprocess
import sys

START = "perplexity_research_start"
QUESTION = "Why is the sky blue? [[sim:ok;words=60;delay_ms=2000]]"


def main(outlast, greeting):
    lines = open(greeting, encoding="utf-8").read().splitlines()
    initialize = next(line for line in lines if json.loads(line).get("method") == "initialize")
    server = subprocess.Popen([outlast, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    call = {"name": START, "arguments": {"messages": [{"role": "user", "content": QUESTION}]}}
    for message in (
        initialize,
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json.dumps({"jsonrpc": "2.0", "id": "start", "method": "tools/call", "params": call}),
    ):
        server.stdin.write(message + "\n")
    server.stdin.flush()
    answers = (json.loads(line) for line in server.stdout)
    result = next(answer["result"] for answer in answers if answer.get("id") == "start")
    message, argv = result["structuredContent"]["message"], result["_meta"]["outlast/wait"]
    name = json.loads(initialize)["params"]["clientInfo"]["name"]
    assert f"run `{' '.join(argv)}` in the background" in message, f"{name}: {message}"
    waited = subprocess.run(argv, capture_output=True, text=True, check=True)
    print(f"{name}: notified {late(outlast, argv[3]):.2f} s after the job: {waited.stdout.strip()}")
    server.stdin.close()
    server.wait(10)


def late(outlast, job):
    """The time since the end of a job."""
    now = datetime.datetime.now(datetime.timezone.utc)
    shown = subprocess.run([outlast, "jobs", "show", job, "--json"], capture_output=True, text=True, check=True)
    ended_at = datetime.datetime.fromisoformat(json.loads(shown.stdout)["ended_at"].replace("Z", "+00:00"))
    seconds = (now - ended_at).total_seconds()
    assert seconds < 1, f"the command ended {seconds} s after the job"
    return seconds


main(*sys.argv[1:])
