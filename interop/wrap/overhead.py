"""What stands between a client and its server costs: the time of a call that answers at once, the CPU time of a call, memory.

The same server directly, behind `outlast wrap`, behind mcp-proxy and behind supergateway, in one run. The last two speak HTTP to their
client, so their figures hold one HTTP exchange. CPU and memory are those of everything but the server.
"""

import argparse
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
GREETING = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "overhead", "version": "1"}}


class Pipe:
    """A server on a pipe."""

    def __init__(self, command, environment):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)

    def request(self, message):
        self.notify(message)
        while (answer := json.loads(self.process.stdout.readline())).get("id") != message["id"]:
            pass
        return answer

    def notify(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


class Web:
    """A server behind a gateway that speaks streamable HTTP."""

    def __init__(self, command, port, environment):
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        self.session = None
        for _ in range(300):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.connection.connect()
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def request(self, message):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.session:
            headers |= {"Mcp-Session-Id": self.session, "Mcp-Protocol-Version": "2025-06-18"}
        self.connection.request("POST", "/mcp", json.dumps(message), headers)
        response = self.connection.getresponse()
        self.session = response.headers.get("Mcp-Session-Id", self.session)
        body = response.read().decode()
        data = [line[5:] for line in body.splitlines() if line.startswith("data:") and line[5:].strip()] or [body]
        return json.loads(data[-1]) if data[-1].strip() else None

    notify = request

    def close(self):
        self.process.terminate()
        self.process.wait(30)


def below(environment):
    """The processes of this run but the server: pid, CPU seconds and resident MB."""
    mark = f"LEDGER={environment['LEDGER']}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if mark not in (entry / "environ").read_bytes().split(b"\0"):
                continue
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            stat = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            is_server = "slow_server.py" in line and line.startswith(sys.executable)
            if line and not is_server:
                cpu = (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
                yield line, cpu, int(stat[21]) * os.sysconf("SC_PAGE_SIZE") / 1e6
        except OSError:
            pass


def measure(name, peer, environment, calls):
    def request(number):
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/call",
                   "params": {"name": "work", "arguments": {"n": number, "ms": 0}}}
        answer = peer.request(message)
        assert answer["result"]["content"][0]["text"] == f"done {number}", answer

    peer.request({"jsonrpc": "2.0", "id": "greeting", "method": "initialize", "params": GREETING})
    peer.notify({"jsonrpc": "2.0", "method": "notifications/initialized"})
    for number in range(50):
        request(number)
    before = sum(cpu for _, cpu, _ in below(environment))
    times = []
    for number in range(50, 50 + calls):
        begun = time.perf_counter()
        request(number)
        times.append((time.perf_counter() - begun) * 1000)
    found = list(below(environment))
    cpu = (sum(cpu for _, cpu, _ in found) - before) / calls * 1000
    memory = ", ".join(f"{'keeper' if '--keeper' in line else 'guard' if ' guard' in line else 'process'} {size:.0f}"
                       for line, _, size in found)
    peer.close()
    times.sort()
    print(f"{name:14} p50 {statistics.median(times):7.3f} ms   p99 {times[int(len(times) * 0.99)]:7.3f} ms   "
          f"CPU {cpu:6.3f} ms/call   MB: {memory or '-'}", flush=True)
    return statistics.median(times)


def free_port():
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


parser = argparse.ArgumentParser()
for option in ("--outlast", "--supergateway", "--mcp-proxy"):
    parser.add_argument(option, required=True)
parser.add_argument("--calls", type=int, default=2000)
parser.add_argument("--at-most", type=float, help="fail when wrap adds more milliseconds than this to the median")
args = parser.parse_args()
server = [sys.executable, str(HERE / "slow_server.py")]
medians = {}
for name in ("direct", "wrap", "mcp-proxy", "supergateway"):
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LEDGER": f"{folder}/ledger", "OUTLAST_DATA_DIR": f"{folder}/data"}
        port = free_port()
        if name == "direct":
            peer = Pipe(server, environment)
        elif name == "wrap":
            peer = Pipe([args.outlast, "wrap", "--", *server], environment)
        elif name == "mcp-proxy":
            command = [args.mcp_proxy, "--port", str(port), "--pass-environment", "--", *server]
            peer = Web(command, port, environment)
        else:
            command = [args.supergateway, "--stdio", " ".join(server), "--outputTransport", "streamableHttp", "--stateful",
                       "--port", str(port), "--logLevel", "none"]
            peer = Web(command, port, environment)
        medians[name] = measure(name, peer, environment, args.calls)
added = medians["wrap"] - medians["direct"]
print(f"wrap adds {added:.3f} ms to the median")
sys.exit(args.at_most is not None and added > args.at_most)
