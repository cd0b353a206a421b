"""One research tool on FastMCP: a plain call for clients of the old revisions, a task of the docket for those that know tasks."""

import os

import httpx
from fastmcp import FastMCP
from fastmcp_tasks import TasksExtension

mcp = FastMCP("bench")
mcp.add_extension(TasksExtension())
provider = httpx.AsyncClient(
    base_url=os.environ["PERPLEXITY_BASE_URL"],
    headers={"authorization": f"Bearer {os.environ['PERPLEXITY_API_KEY']}"},
    timeout=600,
    limits=httpx.Limits(max_connections=2000),
)


@mcp.tool(task=True)
async def research(question: str) -> str:
    run = (await provider.post("/v1/agent", json={"preset": "deep-research", "input": question})).json()
    message = next(item for item in run["output"] if item["type"] == "message")
    return message["content"][0]["text"]


mcp.run(transport="stdio", show_banner=False)
