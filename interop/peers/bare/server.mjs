// The least that a research server can be: one tool on the TypeScript SDK that asks the provider and returns the text.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server = new McpServer({ name: "bare", version: "1" });

server.registerTool("research", { inputSchema: { question: z.string() } }, async ({ question }) => {
  const response = await fetch(`${process.env.PERPLEXITY_BASE_URL}/v1/agent`, {
    method: "POST",
    headers: { authorization: `Bearer ${process.env.PERPLEXITY_API_KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ preset: "deep-research", input: question }),
  });
  const run = await response.json();
  const message = run.output.find((item) => item.type === "message");
  return { content: [{ type: "text", text: message.content[0].text }] };
});

await server.connect(new StdioServerTransport());
