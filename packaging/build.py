"""Packs one binary for every package manager; scripts/package calls it. Equal input gives equal bytes."""

import argparse
import base64
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
PACKAGING = TOP / "packaging"
REPOSITORY = "https://github.com/outlast-mcp/outlast"
SERVER = "io.github.outlast-mcp/outlast"
DESCRIPTION = "Deep research as durable jobs: survives crashes and timeouts, no silent second spend"
LICENCE = "Apache-2.0 OR MIT"
LICENCES = ["LICENSE", "LICENSE-APACHE", "LICENSE-MIT"]

# Each target: npm's names, the tags of its wheel, Homebrew's block.
TARGETS = {
    "x86_64-unknown-linux-gnu": (("linux", "x64", "glibc"), "manylinux_2_17_x86_64.manylinux2014_x86_64", ("linux", "intel")),
    "aarch64-unknown-linux-gnu": (("linux", "arm64", "glibc"), "manylinux_2_17_aarch64.manylinux2014_aarch64", ("linux", "arm")),
    "x86_64-unknown-linux-musl": (("linux", "x64", "musl"), "musllinux_1_2_x86_64", None),
    "aarch64-unknown-linux-musl": (("linux", "arm64", "musl"), "musllinux_1_2_aarch64", None),
    "x86_64-apple-darwin": (("darwin", "x64", None), "macosx_10_12_x86_64", ("macos", "intel")),
    "aarch64-apple-darwin": (("darwin", "arm64", None), "macosx_11_0_arm64", ("macos", "arm")),
}

# The files of the repository that clients read in place, each with the places of the version.
VERSIONED = {
    "packaging/manifest.json": r'("version": ")[^"]*(")',
    "packaging/server.json": r'("version": "|ghcr.io/outlast-mcp/outlast:)[^"]*(")',
    "packaging/plugin/.claude-plugin/plugin.json": r'("version": ")[^"]*(")',
    "packaging/plugin/.codex-plugin/plugin.json": r'("version": ")[^"]*(")',
    "packaging/plugin/.mcp.json": r'(outlast-mcp@)[^"]*(")',
    "packaging/plugin/.codex-mcp.json": r'(outlast-mcp@)[^"]*(")',
    "gemini-extension.json": r'("version": "|outlast-mcp@)[^"]*(")',
    "packaging/kubernetes/servers.yaml": r"(ghcr.io/outlast-mcp/outlast:)\S*()",
    "packaging/kubernetes/workers.yaml": r"(ghcr.io/outlast-mcp/outlast:)\S*()",
}


def version():
    return re.search(r'^version = "(.*)"', (TOP / "Cargo.toml").read_text(), re.M)[1]


def write_versions(check):
    """Writes the version of Cargo.toml into the files that clients read in place; with `check`, fails where it is another."""
    stale = []
    for name, pattern in VERSIONED.items():
        path = TOP / name
        before = path.read_text()
        after = re.sub(pattern, rf"\g<1>{version()}\g<2>", before)
        if after != before:
            stale.append(name)
            if not check:
                path.write_text(after)
    if check and stale:
        sys.exit(f"error: not the version of Cargo.toml: {', '.join(stale)}\n\nhint: scripts/package --versions")


def npm_name(target):
    system, processor, libc = TARGETS[target][0]
    return f"outlast-mcp-{system}-{processor}" + ("-musl" if libc == "musl" else "")


def file_info(name, size, mode):
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, mode
    return info


def tar_bytes(files):
    """files: name -> (bytes, mode); bytes None is a folder."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, (content, mode) in files.items():
            if content is None:
                info = file_info(name, 0, mode)
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
            else:
                tar.addfile(file_info(name, len(content), mode), io.BytesIO(content))
    return out.getvalue()


LEVEL = 9  # of compression


def compressed(data):
    return gzip.compress(data, LEVEL, mtime=0)


def zip_bytes(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
        for name, (content, mode) in files.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.external_attr = (0o100000 | mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return out.getvalue()


def as_json(value):
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def common(name, description):
    return {
        "name": name,
        "version": version(),
        "description": description,
        "license": LICENCE,
        "repository": {"type": "git", "url": f"git+{REPOSITORY}.git"},
    }


def licences(folder):
    return {f"{folder}{name}": ((TOP / name).read_bytes(), 0o644) for name in LICENCES}


def npm(binary, target, out):
    """The launcher, and the package of this platform, as `npm pack` would make them."""
    system, processor, libc = TARGETS[target][0]
    platform = common(npm_name(target), f"The program of outlast-mcp for {system} on {processor}")
    platform |= {"os": [system], "cpu": [processor], "preferUnplugged": True, "files": ["bin"]}
    if libc:
        platform["libc"] = [libc]
    launcher = common("outlast-mcp", DESCRIPTION) | {
        "mcpName": SERVER,
        "bin": {"outlast-mcp": "bin/outlast.js", "outlast": "bin/outlast.js"},
        "files": ["bin"],
        "engines": {"node": ">=18"},
        "keywords": ["mcp", "mcp-server", "research", "jobs"],
        "optionalDependencies": {npm_name(other): version() for other in TARGETS},
    }
    readme = (PACKAGING / "pypi/README.md").read_text().replace("uvx", "npx -y").encode()
    folder = out / "npm"
    folder.mkdir()
    files = {"package/package.json": (as_json(platform), 0o644), "package/bin/outlast": (binary, 0o755)}
    files |= licences("package/")
    (folder / f"{npm_name(target)}-{version()}.tgz").write_bytes(compressed(tar_bytes(files)))
    files = {
        "package/package.json": (as_json(launcher), 0o644),
        "package/bin/outlast.js": ((PACKAGING / "npm/launcher.js").read_bytes(), 0o755),
        "package/README.md": (readme, 0o644),
    }
    files |= licences("package/")
    (folder / f"outlast-mcp-{version()}.tgz").write_bytes(compressed(tar_bytes(files)))


def wheel(binary, target, out):
    tag = f"py3-none-{TARGETS[target][1]}"
    name = f"outlast_mcp-{version()}"
    # A wheel's file name lists the tags, its WHEEL file each of them.
    tags = "".join(f"Tag: py3-none-{each}\n" for each in TARGETS[target][1].split("."))
    metadata = (
        f"Metadata-Version: 2.4\nName: outlast-mcp\nVersion: {version()}\nSummary: {DESCRIPTION}\n"
        f"License-Expression: {LICENCE}\nProject-URL: Repository, {REPOSITORY}\nRequires-Python: >=3.8\n"
        "Description-Content-Type: text/markdown\n" + "".join(f"License-File: {it}\n" for it in LICENCES)
    )
    info = f"{name}.dist-info"
    files = {
        f"{name}.data/scripts/outlast": (binary, 0o755),
        f"{name}.data/scripts/outlast-mcp": ((PACKAGING / "pypi/outlast-mcp").read_bytes(), 0o755),
        f"{info}/METADATA": ((metadata + "\n" + (PACKAGING / "pypi/README.md").read_text()).encode(), 0o644),
        f"{info}/WHEEL": (f"Wheel-Version: 1.0\nGenerator: outlast\nRoot-Is-Purelib: false\n{tags}".encode(), 0o644),
    }
    files |= licences(f"{info}/licenses/")
    record = ""
    for path, (content, _) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = (f"{record}{info}/RECORD,,\n".encode(), 0o644)
    folder = out / "pypi"
    folder.mkdir()
    (folder / f"{name}-{tag}.whl").write_bytes(zip_bytes(files))


def archive(binary, target, out):
    """The archive of a release, which install.sh, Homebrew and cargo-binstall unpack."""
    name = f"outlast-{version()}-{target}"
    program = out / "outlast"
    program.write_bytes(binary)
    program.chmod(0o755)
    run = lambda *args: subprocess.run([program, *args], check=True, capture_output=True).stdout
    if run("--version").decode().split() != ["outlast", version()]:
        sys.exit(f"error: {program} is not version {version()}")
    pages = out / "man"
    run("man", str(pages))
    files = {f"{name}/outlast": (binary, 0o755)}
    for page in sorted(pages.iterdir()):
        files[f"{name}/man/{page.name}"] = (page.read_bytes(), 0o644)
    for shell in ("bash", "zsh", "fish"):
        files[f"{name}/completions/outlast.{shell}"] = (run("completions", shell), 0o644)
    for document in ["README.md", "CHANGELOG.md", *LICENCES]:
        files[f"{name}/{document}"] = ((TOP / document).read_bytes(), 0o644)
    shutil.rmtree(pages)
    program.unlink()
    (out / f"{name}.tar.gz").write_bytes(compressed(tar_bytes(files)))


def mcpb(binary, target, out):
    manifest = json.loads((PACKAGING / "manifest.json").read_text())
    system = TARGETS[target][0][0]
    manifest["compatibility"]["platforms"] = [system]
    files = {"manifest.json": (as_json(manifest), 0o644), "server/outlast": (binary, 0o755)}
    files |= licences("")
    path = out / f"outlast-{version()}-{target}.mcpb"
    path.write_bytes(zip_bytes(files))
    return path


def libraries(program):
    """The C library that this program loads, and what that loads by name, with the paths at which it looks for them."""
    listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    found = [Path(path) for path in re.findall(r"(/\S+) \(0x", listed)]
    folders = {path.parent for path in found if path.name.startswith("libc.so")}
    extra = [folder / name for folder in folders for name in ("libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2")]
    return [path for path in [*found, *extra] if path.exists()]


def oci(binary, target, out):
    """An OCI image layout with one layer: the program, the C library of this machine and its certificates."""
    if "linux-gnu" not in target:
        return
    program = out / "outlast"
    program.write_bytes(binary)
    program.chmod(0o755)
    owner = "outlast:x:10001:10001::/data:/sbin/nologin\n"
    files = {}
    put = lambda path, content, mode: files.setdefault(path.lstrip("/"), (content, mode))
    for folder, mode in (("tmp", 0o1777), ("data", 0o700), ("proc", 0o555), ("dev", 0o755), ("etc", 0o755)):
        put(folder, None, mode)
    put("etc/passwd", owner.encode(), 0o644)
    put("etc/group", b"outlast:x:10001:\n", 0o644)
    put("etc/nsswitch.conf", b"hosts: files dns\n", 0o644)
    certificates = Path("/etc/ssl/certs/ca-certificates.crt")
    if certificates.exists():
        put(str(certificates), certificates.read_bytes(), 0o644)
    for library in libraries(program):
        put(str(library), library.read_bytes(), 0o755)
    for name in LICENCES:
        put(f"usr/share/doc/outlast/{name}", (TOP / name).read_bytes(), 0o644)
    put("usr/local/bin/outlast", binary, 0o755)
    program.unlink()

    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, (content, mode) in sorted(files.items()):
            info = file_info(name, 0 if content is None else len(content), mode)
            if content is None:
                info.type = tarfile.DIRTYPE
            if name == "data":
                info.uid = info.gid = 10001
            tar.addfile(info, None if content is None else io.BytesIO(content))
    layer = layer.getvalue()

    layout = {"oci-layout": (as_json({"imageLayoutVersion": "1.0.0"}), 0o644)}

    def blob(content, media_type):
        digest = hashlib.sha256(content).hexdigest()
        layout[f"blobs/sha256/{digest}"] = (content, 0o644)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    labels = {
        "org.opencontainers.image.title": "outlast",
        "org.opencontainers.image.description": DESCRIPTION,
        "org.opencontainers.image.licenses": LICENCE,
        "org.opencontainers.image.source": REPOSITORY,
        "org.opencontainers.image.version": version(),
        "io.modelcontextprotocol.server.name": SERVER,
    }
    processor = {"x86_64": "amd64", "aarch64": "arm64"}[target.split("-")[0]]
    config = {
        "architecture": processor,
        "os": "linux",
        "config": {
            "User": "10001:10001",
            "Env": ["PATH=/usr/local/bin", "HOME=/data", "OUTLAST_DATA_DIR=/data"],
            "Entrypoint": ["/usr/local/bin/outlast"],
            "Cmd": ["serve"],
            "Volumes": {"/data": {}},
            "WorkingDir": "/data",
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob(as_json(config), "application/vnd.oci.image.config.v1+json"),
        "layers": [blob(compressed(layer), "application/vnd.oci.image.layer.v1.tar+gzip")],
        "annotations": labels,
    }
    entry = blob(as_json(manifest), manifest["mediaType"])
    entry |= {
        "platform": {"architecture": processor, "os": "linux"},
        "annotations": {"org.opencontainers.image.ref.name": version()},
    }
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [entry]}
    layout["index.json"] = (as_json(index), 0o644)
    (out / f"outlast-{version()}-{target}.oci.tar").write_bytes(tar_bytes(layout))


def formula(release, archives):
    """Homebrew's formula for the platforms whose archive is here."""
    lines = [
        "class Outlast < Formula",
        f'  desc "{DESCRIPTION.split(":")[0]}"',
        f'  homepage "{REPOSITORY}"',
        f'  version "{version()}"',
        '  license any_of: ["Apache-2.0", "MIT"]',
    ]
    for target, (_, _, block) in TARGETS.items():
        path = next((it for it in archives if it.name == f"outlast-{version()}-{target}.tar.gz"), None)
        if block and path:
            system, processor = block
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            lines += ["", f"  on_{system} do", f"    on_{processor} do", f'      url "{release}/{path.name}"']
            lines += [f'      sha256 "{digest}"', "    end", "  end"]
    lines += [
        "",
        "  def install",
        '    bin.install "outlast"',
        '    man1.install Dir["man/*.1"]',
        '    bash_completion.install "completions/outlast.bash" => "outlast"',
        '    zsh_completion.install "completions/outlast.zsh" => "_outlast"',
        '    fish_completion.install "completions/outlast.fish"',
        "  end",
        "",
        "  test do",
        '    assert_match version.to_s, shell_output("#{bin}/outlast --version")',
        "  end",
        "end",
    ]
    return "\n".join(lines) + "\n"


def shared(out, release, key):
    """What names the files of all platforms: sums, install.sh, the formula, server.json."""
    released = sorted([*out.glob("*.tar.gz"), *out.glob("*.mcpb")])
    sums = "".join(f"{hashlib.sha256(it.read_bytes()).hexdigest()}  {it.name}\n" for it in released)
    (out / "SHA256SUMS").write_text(sums)
    public = ""
    if key:
        subprocess.run(["minisign", "-S", "-s", key, "-m", out / "SHA256SUMS"], check=True, stdout=subprocess.DEVNULL)
        public = Path(f"{key}.pub").read_text().split("\n")[1]
    script = (PACKAGING / "install.sh").read_text()
    for name, value in (("VERSION", version()), ("RELEASE", release), ("REPOSITORY", REPOSITORY), ("MINISIGN_KEY", f"'{public}'")):
        script = script.replace(f"@{name}@", value)
    (out / "install.sh").write_text(script)
    (out / "install.sh").chmod(0o755)
    (out / "outlast.rb").write_text(formula(release, released))
    server = json.loads((PACKAGING / "server.json").read_text())
    variables = server["packages"][0]["environmentVariables"]
    for bundle in (it for it in released if it.suffix == ".mcpb"):
        server["packages"].append({
            "registryType": "mcpb",
            "identifier": f"{release}/{bundle.name}",
            "fileSha256": hashlib.sha256(bundle.read_bytes()).hexdigest(),
            "transport": {"type": "stdio"},
            "environmentVariables": variables,
        })
    (out / "server.json").write_bytes(as_json(server))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path)
    parser.add_argument("--target", choices=TARGETS)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--release", default=f"{REPOSITORY}/releases/download/v{version()}")
    parser.add_argument("--sign", help="a secret key of minisign, its public key beside it in KEY.pub")
    parser.add_argument("--fast", action="store_true", help="compress little")
    parser.add_argument("--versions", choices=["write", "check"])
    args = parser.parse_args()
    global LEVEL
    LEVEL = 1 if args.fast else 9
    if args.versions:
        return write_versions(args.versions == "check")
    write_versions(check=True)
    if args.binary:
        shutil.rmtree(args.out, ignore_errors=True)
        args.out.mkdir(parents=True)
        binary = args.binary.read_bytes()
        for pack in (archive, npm, wheel, mcpb, oci):
            pack(binary, args.target, args.out)
    shared(args.out, args.release, args.sign)
    for path in sorted(args.out.rglob("*")):
        if path.is_file():
            print(f"{path.stat().st_size:>12,}  {path.relative_to(args.out)}")


main()
