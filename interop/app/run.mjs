// I7: the view inside a chat, in a real browser, in a host on AppBridge. Progress moves, the report shows, and nothing but
// the view's own tool is called. Arguments: the program, the bundled host, the browser, a folder for pictures or nothing.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const [outlast, bundle, executablePath, pictures] = process.argv.slice(2);
const LIMIT = 60_000;

// A client of the server under test, over its pipe.
const server = spawn(outlast, ["serve"], { stdio: ["pipe", "pipe", "inherit"] });
const waiting = new Map();
createInterface({ input: server.stdout }).on("line", (line) => {
  const message = JSON.parse(line);
  waiting.get(message.id)?.(message);
  waiting.delete(message.id);
});
let last = 0;
const send = (message) => server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const request = (method, params) => new Promise((resolve, reject) => {
  const id = ++last;
  waiting.set(id, (answer) => answer.error ? reject(new Error(answer.error.message)) : resolve(answer.result));
  send({ id, method, params });
});
const ui = "io.modelcontextprotocol/ui";
await request("initialize", {
  protocolVersion: "2025-11-25",
  capabilities: { extensions: { [ui]: { mimeTypes: ["text/html;profile=mcp-app"] } } },
  clientInfo: { name: "host", version: "1" },
});
send({ method: "notifications/initialized" });
const { tools } = await request("tools/list", {});
const simulator = process.env.PERPLEXITY_BASE_URL;

async function html(tool) {
  const uri = tools.find(({ name }) => name === tool)._meta.ui.resourceUri;
  return (await request("resources/read", { uri })).contents[0].text;
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 700, height: 800 } });
const problems = [];
page.on("pageerror", (error) => problems.push(String(error)));
page.on("console", (line) => line.type() === "error" && problems.push(line.text()));
await page.exposeFunction("call_tool", (params) => request("tools/call", params));
await page.setContent(`<!doctype html><title>host</title><body></body>`);
await page.addScriptTag({ content: readFileSync(bundle, "utf8") });
const frame = () => page.frameLocator("iframe");
const seen = () => page.evaluate(() => window.seen);
const open = (html, input, theme) =>
  page.evaluate(([html, input, theme]) => window.open_view(html, input, theme), [html, input, theme]);
const picture = async (name) => pictures && page.screenshot({ path: `${pictures}/${name}.png` });

// A started job: the view learns its id from the result and follows it by itself.
const start = "perplexity_research_start";
const question = "Why is the sky blue? [[sim:ok;words=150;sources=4;delay_ms=5000;hold]]";
const given = { messages: [{ role: "user", content: question }] };
await open(await html(start), given, "light");
const started = await request("tools/call", { name: start, arguments: given });
await page.evaluate((result) => window.tool_result(result), started);
await frame().locator("#title", { hasText: "Why is the sky blue?" }).waitFor({ timeout: LIMIT });
// The provider holds the run until the first value of the bar was seen.
const moved = new Set();
const look = async () => {
  const value = await frame().locator("#bar").getAttribute("aria-valuenow");
  if (value) moved.add(value);
  await page.waitForTimeout(100);
};
const deadline = Date.now() + LIMIT;
while (moved.size === 0 && Date.now() < deadline) await look();
await fetch(`${simulator}/__sim/release`, { method: "POST" });
while (await frame().locator("#report article").count() === 0 && Date.now() < deadline) await look();
await look();
assert.ok(moved.size >= 2, `progress moved: ${[...moved]}`);
await frame().locator("#report article").waitFor({ timeout: LIMIT });
await picture("app-report-light");
const { calls, contexts } = await seen();
assert.ok(calls.length >= 2 && calls.every(({ name }) => name === "show_job"), JSON.stringify(calls));
await page.waitForFunction(() => window.seen.contexts.length === 1, null, { timeout: LIMIT });
assert.ok(contexts.length <= 1);

// A link leaves by the host; a citation stays.
await frame().locator("ol.sources a").first().click();
await page.waitForFunction(() => window.seen.links.length === 1, null, { timeout: LIMIT });
assert.match((await seen()).links[0], /^https?:/);
await frame().locator("#save").click();
await page.waitForFunction(() => window.seen.files.length === 1, null, { timeout: LIMIT });
const settled = (await seen()).calls.length;
await page.waitForTimeout(2500);
assert.equal((await seen()).calls.length, settled, "a job that has ended is not asked after");

// A held call has told no id yet: its view finds the job by the question.
const held = "perplexity_deep_research";
const query = "What do tides do? [[sim:ok;words=80;delay_ms=3000]]";
await open(await html(held), { query }, "dark");
const answered = request("tools/call", { name: held, arguments: { query } });
await frame().locator("#facts", { hasText: "perplexity" }).waitFor({ timeout: LIMIT });
await picture("app-running-dark");
await page.evaluate((result) => window.tool_result(result), await answered);
await frame().locator("#report article").waitFor({ timeout: LIMIT });
await picture("app-report-dark");

// A report full of tags and scripts shows as text.
const hostile = "What is hostile? [[sim:inject;line=200;delay_ms=500]]";
await open(await html(start), {}, "light");
const bad = await request("tools/call", { name: start, arguments: { messages: [{ role: "user", content: hostile }] } });
await page.evaluate((result) => window.tool_result(result), bad);
await frame().locator("#report article, #error:not([hidden])").first().waitFor({ timeout: LIMIT });
assert.equal(await frame().locator("#report script, #report img, #report svg, #report iframe").count(), 0);

// A report with a table, in a narrow chat: the table scrolls, and no word of it is broken.
await page.setViewportSize({ width: 390, height: 844 });
const rich = "Which heat pumps last? [[sim:ok;words=300;rich;delay_ms=500]]";
await open(await html(start), {}, "light");
const written = await request("tools/call", { name: start, arguments: { messages: [{ role: "user", content: rich }] } });
await page.evaluate((result) => window.tool_result(result), written);
await frame().locator("#report table").waitFor({ timeout: LIMIT });
const seenTable = await frame().locator("#report").evaluate((report) => {
  const broken = [];
  for (const cell of report.querySelectorAll("td, th")) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode;
      if (text.parentElement.closest(".url")) continue;
      for (const { 0: word, index } of text.data.matchAll(/[\p{L}\p{N},.$]+/gu)) {
        const range = document.createRange();
        range.setStart(text, index);
        range.setEnd(text, index + word.length);
        if (new Set([...range.getClientRects()].map((line) => Math.round(line.top))).size > 1) broken.push(word);
      }
    }
  }
  const table = report.querySelector(".table");
  return { broken, scrolls: table.scrollWidth > table.clientWidth, isTooWide: document.documentElement.scrollWidth > innerWidth, text: report.innerText };
});
assert.deepEqual(seenTable.broken, [], "no word of a table is broken");
assert.ok(seenTable.scrolls && !seenTable.isTooWide, "the table scrolls, and nothing else does");
for (const raw of ["$$", "\\(", "- [x]", "[^noise]"]) assert.ok(!seenTable.text.includes(raw), raw);
await picture("app-table-light");

// A lost submit: its command line is code.
await open(await html(start), {}, "dark");
const lost = await request("tools/call", { name: start, arguments: { messages: [{ role: "user", content: "Was it paid? [[sim:drop_submit]]" }] } });
await page.evaluate((result) => window.tool_result(result), lost);
await frame().locator("#error code").first().waitFor({ timeout: LIMIT });
const said = await frame().locator("#error").innerText();
assert.ok(said.startsWith("SUBMIT_UNKNOWN: ") && !said.includes("`"), said);
await picture("app-error-dark");

assert.deepEqual(problems, []);
await browser.close();
// Before its folder goes.
const gone = new Promise((resolve) => server.on("exit", resolve));
server.stdin.end();
await gone;
console.log(`app view: progress moved ${moved.size} times, report shown, ${calls.length} calls, all of them show_job`);
