"""Installs each package of a folder with its own tool, from the files alone, and makes one MCP call through it."""

import argparse
import hashlib
import http.server
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from base64 import b64encode
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
SECONDS = 120


def fail(why, hint="scripts/package builds the packages"):
    sys.exit(f"error: {why}\n\nhint: {hint}")


class Registry:
    """The registries of npm and of Python for the packages of a folder, on loopback."""

    def __init__(self, out):
        self.pages = {}
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                kind, content = registry.pages.get(self.path.rstrip("/"), (None, b""))
                self.send_response(200 if kind else 404)
                self.send_header("Content-Type", kind or "text/plain")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(content)

            do_HEAD = do_GET

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_port}"
        for path in (out / "npm").glob("*.tgz"):
            self.add_npm(path)
        for path in (out / "pypi").glob("*.whl"):
            self.add_wheel(path)
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def add_npm(self, path):
        content = path.read_bytes()
        with tarfile.open(path) as tar:
            package = json.load(tar.extractfile("package/package.json"))
        name, version = package["name"], package["version"]
        integrity = "sha512-" + b64encode(hashlib.sha512(content).digest()).decode()
        package["dist"] = {"tarball": f"{self.url}/{name}/-/{path.name}", "integrity": integrity}
        document = {"name": name, "dist-tags": {"latest": version}, "versions": {version: package}}
        self.pages[f"/{name}"] = ("application/json", json.dumps(document).encode())
        self.pages[f"/{name}/-/{path.name}"] = ("application/octet-stream", content)

    def add_wheel(self, path):
        content = path.read_bytes()
        link = f"/files/{path.name}#sha256={hashlib.sha256(content).hexdigest()}"
        self.pages["/simple/outlast-mcp"] = ("text/html", f'<a href="{link}">{path.name}</a>'.encode())
        self.pages[f"/files/{path.name}"] = ("application/octet-stream", content)


class World:
    """A separate home directory, and nothing of this machine's configuration."""

    def __init__(self, work, version):
        self.work, self.version = work, version
        self.home = work / "home"
        self.home.mkdir()
        self.env = {"HOME": str(self.home), "PATH": os.environ["PATH"], "OUTLAST_DETACH": "false", "LANG": "C.UTF-8"}

    def run(self, *command, **env):
        ran = subprocess.run(
            list(map(str, command)), env=self.env | env, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL
        )
        if ran.returncode:
            fail(f"{' '.join(map(str, command))} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
        return ran.stdout

    def call(self, name, *command, **env):
        """Initialises an MCP server, calls a tool and ends it."""
        begun = time.monotonic()
        server = subprocess.Popen(
            list(map(str, command)), env=self.env | env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=open(self.work / f"{name}.log", "w"), text=True,
        )
        watchdog = threading.Timer(SECONDS, server.kill)
        watchdog.start()

        def ask(number, method, params):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            server.stdin.write(json.dumps(message) + "\n")
            server.stdin.flush()
            line = server.stdout.readline()
            if not line:
                fail(f"{name} did not answer:\n{(self.work / f'{name}.log').read_text()}")
            return json.loads(line)

        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "check", "version": "1"}}
        info = ask(1, "initialize", client)["result"]["serverInfo"]
        started = time.monotonic() - begun
        server.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        answer = ask(2, "tools/call", {"name": "list_conversations", "arguments": {}})
        server.stdin.close()
        code = server.wait(timeout=SECONDS)
        watchdog.cancel()
        if info["version"] != self.version or "conversations" not in answer["result"]["structuredContent"] or code:
            fail(f"{name}: {info} {answer}, exit code {code}")
        print(f"ok -- {name}: answers over MCP, {started:.1f} s after its command", flush=True)


def init_writes(world, name, command, *way):
    """N3: `init` writes the command that fits the way of the installation, and `upgrade --check` names it."""
    shown = json.loads(world.run(*way, "init", "cursor", "--print"))["mcpServers"]["outlast"]
    if [shown["command"], *shown["args"]][: len(command)] != command:
        fail(f"init of {name} writes {shown}")
    print(f"ok -- {name}: init writes `{' '.join(command)}`; {world.run(*way, 'upgrade', '--check').splitlines()[-1].strip()}")


def check_npm(world, out):
    registry = Registry(out)
    npm = {"npm_config_registry": registry.url, "npm_config_cache": str(world.work / "npm"), "npm_config_update_notifier": "false"}
    world.call("npx", "npx", "-y", "outlast-mcp", **npm)
    world.env |= npm
    init_writes(world, "npx", ["npx", "-y", "outlast-mcp", "serve"], "npx", "-y", "outlast-mcp")
    prefix = world.work / "npm-global"
    world.run("npm", "install", "--global", "--prefix", prefix, "--no-audit", "--no-fund", "outlast-mcp")
    world.call("npm install --global", prefix / "bin/outlast", "serve")
    world.run("npm", "uninstall", "--global", "--prefix", prefix, "outlast-mcp")
    if (prefix / "bin/outlast").exists():
        fail("npm uninstall leaves the program")


def check_wheel(world, out, tools):
    index = f"{Registry(out).url}/simple"
    world.env |= {"UV_DEFAULT_INDEX": index, "UV_CACHE_DIR": str(world.work / "uv")}
    world.env |= {"UV_PYTHON_DOWNLOADS": "never", "UV_PYTHON": sys.executable}
    world.call("uvx", tools / "uvx", "outlast-mcp")
    init_writes(world, "uvx", ["uvx", "outlast-mcp", "serve"], tools / "uvx", "outlast-mcp")
    world.run(tools / "uv", "tool", "install", "outlast-mcp")
    world.call("uv tool", world.home / ".local/bin/outlast", "serve")
    world.run(tools / "uv", "tool", "uninstall", "outlast-mcp")
    venv = world.work / "venv"
    world.run(sys.executable, "-m", "venv", venv)
    pip = [venv / "bin/pip", "--disable-pip-version-check", "--quiet"]
    world.run(*pip, "install", "--index-url", index, "outlast-mcp")
    world.call("pip", venv / "bin/outlast", "serve")
    world.run(*pip, "uninstall", "--yes", "outlast-mcp")
    if (venv / "bin/outlast").exists():
        fail("pip uninstall leaves the program")


def check_script(world, out):
    script, program = out / "install.sh", world.home / ".local/bin/outlast"
    world.env["OUTLAST_DOWNLOAD_URL"] = f"file://{out}"
    world.run("sh", script)
    world.call("install.sh", program, "serve")
    init_writes(world, "install.sh", [str(program), "serve"], program)
    world.run("sh", script, "--uninstall")
    if program.exists():
        fail("install.sh --uninstall leaves the program")
    # A file that is not the one that was released, and sums that nobody signed, are refused.
    damaged = world.work / "damaged"
    shutil.copytree(out, damaged, ignore=shutil.ignore_patterns("npm", "pypi", "*.oci.tar", "*.mcpb"))
    archive = next(damaged.glob("*.tar.gz"))
    archive.write_bytes(archive.read_bytes() + b"x")
    refused(world, damaged, "is not the file that was released")
    if shutil.which("minisign") and (out / "SHA256SUMS.minisig").exists():
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        (damaged / "SHA256SUMS").write_text(f"{digest}  {archive.name}\n")
        refused(world, damaged, "signature")
        print("ok -- install.sh: refuses a damaged archive, and sums with another signature")
    else:
        print("ok -- install.sh: refuses a damaged archive (signatures were not checked: no minisign or no key)")


def refused(world, folder, why):
    env = world.env | {"OUTLAST_DOWNLOAD_URL": f"file://{folder}"}
    ran = subprocess.run(["sh", folder / "install.sh"], env=env, capture_output=True, text=True)
    if ran.returncode == 0 or why not in ran.stderr or (world.home / ".local/bin/outlast").exists():
        fail(f"install.sh takes a wrong file: {ran}")


def check_bundle(world, out):
    folder = world.work / "bundle"
    with zipfile.ZipFile(next(out.glob("*.mcpb"))) as bundle:
        bundle.extractall(folder)
        for info in bundle.infolist():
            os.chmod(folder / info.filename, info.external_attr >> 16)
    manifest = json.loads((folder / "manifest.json").read_text())["server"]["mcp_config"]
    # A client fills in the folder, and the questions' defaults.
    env = {name: "" if "user_config" in value else value for name, value in manifest["env"].items()}
    world.call("MCPB", manifest["command"].replace("${__dirname}", str(folder)), *manifest["args"], **env)


def check_image(world, out):
    image = next(out.glob("*.oci.tar"))
    layout, root = world.work / "layout", world.work / "root"
    with tarfile.open(image) as tar:
        tar.extractall(layout, filter="fully_trusted")
    blob = lambda entry: (layout / "blobs" / entry["digest"].replace(":", "/")).read_bytes()
    for path in (layout / "blobs/sha256").iterdir():
        if hashlib.sha256(path.read_bytes()).hexdigest() != path.name:
            fail(f"the image's blob {path.name} has another sum")
    manifest = json.loads(blob(json.loads((layout / "index.json").read_text())["manifests"][0]))
    config = json.loads(blob(manifest["config"]))["config"]
    if os.getuid():
        print("image: not started, because only root may change the root directory")
        return
    for layer in manifest["layers"]:
        path = layout / "blobs" / layer["digest"].replace(":", "/")
        with tarfile.open(path) as tar:
            tar.extractall(root, filter="fully_trusted")
    os.chmod(world.work, 0o755)
    command = [*config["Entrypoint"], *config["Cmd"]]
    env = dict(value.split("=", 1) for value in config["Env"])
    chroot = shutil.which("chroot")
    world.call("image in a chroot", chroot, f"--userspec={config['User']}", root, "/usr/local/bin/outlast", *command[1:], **env)


def check_formula(out):
    ruby = shutil.which("ruby")
    if not ruby:
        print("formula: its syntax was not checked, because ruby is not here")
        return
    subprocess.run([ruby, "-c", out / "outlast.rb"], check=True, stdout=subprocess.DEVNULL)
    print("ok -- formula: ruby reads it")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--tools", type=Path, required=True, help="the folder of uv and uvx")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        checks = (
            lambda world: check_npm(world, args.out),
            lambda world: check_wheel(world, args.out, args.tools),
            lambda world: check_script(world, args.out),
            lambda world: check_bundle(world, args.out),
            lambda world: check_image(world, args.out),
        )
        for number, check in enumerate(checks):
            folder = Path(work) / str(number)
            folder.mkdir()
            check(World(folder, args.version))
        check_formula(args.out)


main()
