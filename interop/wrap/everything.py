"""What `outlast wrap` adds to the calls of the protocol's reference server, which answers at once.

The server directly and behind `outlast wrap`, in turns, by the same client: one call at a time, then some in flight at once. Prints
the median of the rounds, and fails beyond the limits that are given.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

GREETING = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "overhead", "version": "1"}}


class Client:
    """A server on a pipe."""

    def __init__(self, command, environment):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        env=environment)
        self.last = 0
        answer = self.answer_of(self.send("initialize", GREETING))
        assert "result" in answer, answer
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def send(self, method, params):
        self.last += 1
        self.write({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        return self.last

    def answer(self):
        """The next answer; what the server says besides is left out."""
        while True:
            message = json.loads(self.process.stdout.readline())
            if "id" in message and "method" not in message:
                return message

    def answer_of(self, request):
        while (answer := self.answer())["id"] != request:
            pass
        return answer

    def call(self):
        return self.send("tools/call", {"name": "echo", "arguments": {"message": f"call {self.last}"}})

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


def one_at_a_time(client, calls):
    """Milliseconds of each call."""
    times = []
    for _ in range(calls):
        begun = time.perf_counter()
        answer = client.answer_of(client.call())
        times.append((time.perf_counter() - begun) * 1000)
        assert answer["result"]["content"][0]["text"].startswith("Echo: call"), answer
    return times


def in_flight(client, calls, at_once):
    """Calls a second."""
    begun = time.perf_counter()
    sent = 0
    for done in range(calls):
        while sent < calls and sent - done < at_once:
            client.call()
            sent += 1
        client.answer()
    return calls / (time.perf_counter() - begun)


parser = argparse.ArgumentParser()
parser.add_argument("--outlast", required=True)
parser.add_argument("--server", required=True, help="the program of server-everything")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--calls", type=int, default=2000)
parser.add_argument("--in-flight", type=int, default=16)
parser.add_argument("--most-added", type=float, help="fail when wrap adds more milliseconds to the median")
parser.add_argument("--least-rate", type=float, help="fail when the rate behind wrap is a smaller part of the direct one")
args = parser.parse_args()
server = [args.server, "stdio"]
found = {"direct": ([], [], []), "wrapped": ([], [], [])}
with tempfile.TemporaryDirectory() as folder:
    environment = {**os.environ, "OUTLAST_DATA_DIR": f"{folder}/data"}
    clients = {"direct": Client(server, environment), "wrapped": Client([args.outlast, "wrap", "--", *server], environment)}
    for client in clients.values():
        one_at_a_time(client, max(args.calls // 4, 50))
    for _ in range(args.rounds):
        for name, client in clients.items():
            times = sorted(one_at_a_time(client, args.calls))
            found[name][0].append(statistics.median(times))
            found[name][1].append(times[int(len(times) * 0.99)])
            found[name][2].append(in_flight(client, args.calls, args.in_flight))
    for client in clients.values():
        client.close()
direct, wrapped = ([statistics.median(figures) for figures in found[name]] for name in ("direct", "wrapped"))
print(f"| {args.rounds} rounds of {args.calls} calls | direct | wrapped |\n|---|---|---|")
print(f"| a call, p50, ms | {direct[0]:.3f} | {wrapped[0]:.3f} |")
print(f"| a call, p99, ms | {direct[1]:.3f} | {wrapped[1]:.3f} |")
print(f"| calls a second, {args.in_flight} in flight | {direct[2]:.0f} | {wrapped[2]:.0f} |")
added = statistics.median(w - d for w, d in zip(found["wrapped"][0], found["direct"][0]))
rate = statistics.median(w / d for w, d in zip(found["wrapped"][2], found["direct"][2]))
print(f"\nwrap adds {added:.3f} ms to the median; the wrapped rate is {rate:.2f} of the direct one")
too_slow = args.most_added is not None and added > args.most_added
too_few = args.least_rate is not None and rate < args.least_rate
sys.exit(too_slow or too_few)
