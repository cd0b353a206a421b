"""Who is measured: how each is started, what its tool is called, and how it is asked for a job."""

import itertools
import os
import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

NUMBERS = itertools.count()


@dataclass
class Contender:
    name: str
    command: list
    tool: str
    environment: dict
    installed: list
    jobs: str | None = None
    modern: bool = False
    folder: str = ""
    wide: dict = field(default_factory=dict)

    def question(self, scenario, again=False):
        """Another one each time, unless it is asked `again`: outlast answers the same question with the report it has."""
        text = f"Why{'' if again else f' {next(NUMBERS)}'}? [[sim:{scenario}]]"
        if self.tool == "perplexity_research":
            return {"messages": [{"role": "user", "content": text}]}
        return {"question": text}

    def fresh(self, **changes):
        """The same with an empty folder of its own."""
        old, folder = self.folder, tempfile.mkdtemp(prefix="outlast-peers-")
        environment = {key: value.replace(old, folder) if old else value for key, value in self.environment.items()}
        environment["HOME"] = folder
        if self.name.startswith("outlast"):
            environment["OUTLAST_DATA_DIR"] = folder
        return replace(self, folder=folder, environment=environment, **changes)

    def beside(self, *flags):
        """A second server of the same store."""
        return replace(self, command=[*self.command, *flags])

    def many(self):
        """Set up to do a thousand things at once."""
        return replace(self, environment={**self.environment, **self.wide})

    def forget(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def all_of(outlast, peers, simulator, redis, postgres):
    provider = {"PATH": os.environ["PATH"], "PERPLEXITY_BASE_URL": simulator, "PERPLEXITY_API_KEY": "pplx-bench"}
    limits = {"OUTLAST_MAX_JOBS_PER_OWNER": "1000000", "OUTLAST_LOG": "warn", "OUTLAST_TOOLS": "perplexity,research-jobs"}
    node = shutil.which("node")
    python = str(peers / "fastmcp-python/bin/python")
    ours = {"tool": "perplexity_research", "jobs": "poll", "installed": [Path(outlast)], "wide": {"OUTLAST_CONCURRENCY": "1000"}}
    fastmcp = {"tool": "research", "installed": [peers / "fastmcp-python/lib"]}
    docket = {"jobs": "task", "modern": True, **fastmcp}
    wide = {"FASTMCP_DOCKET_CONCURRENCY": "1000"}
    # As users install it, and in one process.
    installed, own = {**provider, **limits}, {**provider, **limits, "OUTLAST_DETACH": "false"}
    found = [
        Contender("outlast", [outlast, "serve"], environment=installed, **ours),
        Contender("outlast, one process", [outlast, "serve"], environment=own, **ours),
        Contender("outlast, PostgreSQL", [outlast, "serve", "--store", postgres], environment={**own, "OUTLAST_OWNER": "bench"}, **ours),
        Contender(
            "vendor's server",
            [node, str(peers / "vendor/node_modules/@perplexity-ai/mcp-server/dist/index.js")],
            "perplexity_research",
            provider,
            [peers / "vendor/node_modules"],
        ),
        Contender("bare SDK", [node, str(peers / "bare/server.mjs")], "research", provider, [peers / "bare/node_modules"]),
        Contender("FastMCP", [python, str(peers / "fastmcp/server.py")], environment=provider, **fastmcp),
        Contender("FastMCP tasks", [python, str(peers / "fastmcp/server.py")], environment=provider, wide=wide, **docket),
    ]
    shared = {"FASTMCP_DOCKET_URL": f"{redis}?max_connections=5000", "FASTMCP_DOCKET_REDELIVERY_TIMEOUT": "PT10S"}
    found.append(replace(found[-1], name="FastMCP tasks, Redis", environment={**provider, **shared}))
    return {one.name: one for one in found}
