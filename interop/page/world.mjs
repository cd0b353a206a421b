// A simulated provider, servers and browsers for the scripts of this folder.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

export const ANN = "ann-0123456789abcdef0123";
export const BOB = "bob-0123456789abcdef0123";
const { OUTLAST, CHROMIUM, WORK } = process.env;
const children = new Set();
export const problems = [];

export function check(what, holds, more = "") {
  if (!holds) throw new Error(`${what} ${more}`);
  console.log(`ok  ${what}`);
}

function run(name, args, env, pattern, program = OUTLAST) {
  const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  children.add(child);
  let said = "";
  return new Promise((resolve, reject) => {
    const hear = (bytes) => {
      said += bytes;
      const found = said.match(pattern);
      if (found) resolve({ child, found: found[1] });
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    child.on("exit", (code) => {
      children.delete(child);
      reject(new Error(`${name} ended with ${code}: ${said}`));
    });
  });
}

let provider;
export function environment(extra = {}) {
  const home = join(WORK, "home");
  mkdirSync(home, { recursive: true });
  return {
    HOME: home, OUTLAST_DATA_DIR: join(WORK, "data"), PERPLEXITY_API_KEY: "pplx-page", PERPLEXITY_BASE_URL: provider,
    OUTLAST_TOKENS: `ann=${ANN},bob=${BOB}`, PERPLEXITY_RETRY_BASE_MS: "50", OUTLAST_RATE_PER_MINUTE: "100000", ...extra,
  };
}
export async function simulate() {
  ({ found: provider } = await run("the simulator", ["--port", "0", "--speed", "20"], {}, /(http:\/\/127\.0\.0\.1:\d+)/, `${OUTLAST}-simulator`));
}
export async function serve(port = 0, extra = {}) {
  const { child, found } = await run("the server", ["serve", "--http", `127.0.0.1:${port}`], environment(extra), /listening on (http:\/\/[\d.:]+)\/mcp/);
  return { url: found, port: Number(new URL(found).port), kill: () => new Promise((done) => { child.removeAllListeners("exit"); child.on("exit", done); child.kill("SIGKILL"); }) };
}

/** `outlast ui` with a desktop that writes down what it is asked to open. */
export async function ownPage() {
  const folder = join(WORK, "bin");
  const opened = join(folder, "opened");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "xdg-open"), `#!/bin/sh\nprintf %s "$1" > ${opened}.new; mv ${opened}.new ${opened}\n`, { mode: 0o755 });
  const { found } = await run("the page", ["ui"], environment({ PATH: `${folder}:/usr/bin:/bin` }), /(http:\/\/127\S+)\n/);
  for (let tries = 0; !existsSync(opened) && tries < 100; tries += 1) await new Promise((done) => setTimeout(done, 100));
  return { link: found, file: readFileSync(opened, "utf8") };
}

let browser;
export async function launch() {
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  return browser;
}
/** A profile of its own, whose errors are failures. */
export async function profile(options = {}) {
  const context = await browser.newContext(options);
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
    globalThis.attacked = false;
    globalThis.alert = () => { globalThis.attacked = true; };
  });
  const page = await context.newPage();
  page.expected = [];
  page.on("pageerror", (error) => problems.push(`${page.url()}: ${error}`));
  page.on("console", (message) => {
    if (message.type() !== "error") return;
    if (page.expected.some((pattern) => pattern.test(message.text()))) return;
    problems.push(`${page.url()}: ${message.text()}`);
  });
  page.on("request", (request) => {
    const { hostname, protocol } = new URL(request.url());
    if (hostname !== "127.0.0.1" && protocol !== "file:") problems.push(`asked ${request.url()}`);
  });
  return { context, page };
}
export async function signIn(page, url, token) {
  page.expected.push(/401/);
  await page.goto(`${url}/ui`);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Jobs" }).waitFor();
}
export async function ask(page, url, question) {
  await page.goto(`${url}/ui/ask`);
  await page.getByLabel("Question").fill(question);
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await page.getByRole("heading", { name: "Ask this?" }).waitFor();
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await page.waitForURL(/\/ui\/jobs\/[0-9a-f]{32}$/);
  return page.url();
}
export async function end() {
  await browser?.close();
  for (const child of children) { child.removeAllListeners("exit"); child.kill("SIGKILL"); }
}
