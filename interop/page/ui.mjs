// What a person does on the page, in Chromium.
import { pathToFileURL } from "node:url";
import { accessible } from "./axe.mjs";
import { ANN, BOB, ask, check, end, launch, ownPage, problems, profile, serve, signIn, simulate } from "./world.mjs";
import { job } from "./job.mjs";
import { list } from "./list.mjs";

async function main() {
  await simulate();
  let server = await serve();
  await launch();
  const { page } = await profile({ reducedMotion: "reduce" });
  await page.goto(`${server.url}/ui`);
  page.expected.push(/401/);
  problems.length = 0;
  await accessible(page, "the sign-in page");
  await signIn(page, server.url, ANN);
  check("the token is in no address", !(await page.evaluate(() => location.href)).includes(ANN));
  await accessible(page, "an empty list");

  // Ask, see progress without a reload, read the report.
  await page.evaluate(() => { globalThis.sameDocument = true; });
  const first = await ask(page, server.url, "How do leases outlive their workers? [[sim:ok;words=300;delay_ms=40000]]");
  await page.evaluate(() => { globalThis.sameDocument = true; });
  await page.locator("#standing .state.running").waitFor();
  await page.locator("#standing progress").waitFor();
  const seen = new Set();
  const deadline = Date.now() + 60000;
  while (Date.now() < deadline && !(await page.locator("#standing .state.succeeded").count())) {
    const value = await page.locator("#standing progress").getAttribute("value", { timeout: 500 }).catch(() => null);
    if (value) seen.add(value);
    await page.waitForTimeout(50);
  }
  check("progress moves", seen.size >= 2, [...seen].join(" "));
  check("without a reload", await page.evaluate(() => globalThis.sameDocument === true));
  await page.locator(".report").waitFor();
  await page.locator(".cite").first().click();
  check("a citation leads to its source", /#s1-\d+$/.test(page.url()), page.url());
  check("and the source is in view", await page.locator(`[id="${new URL(page.url()).hash.slice(1)}"]`).isVisible());
  await accessible(page, "a job with its report");

  // The browser's own Back leads to the forms, with what was written, and asks for nothing to be sent again.
  await page.goto(`${server.url}/ui/ask`);
  // The browser gives a field the focus, and gives it back what was written, some time after the page has loaded.
  await page.waitForFunction(() => document.activeElement?.matches("textarea"));
  await page.keyboard.type("What is kept?");
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await page.getByRole("heading", { name: "Ask this?" }).waitFor();
  const repeated = await page.locator("main").innerText();
  for (const part of ["What is kept?", "medium", "perplexity", "usually $"]) check(`the question before it is asked names ${part}`, repeated.includes(part), repeated);
  await page.getByRole("link", { name: "Back" }).click();
  const kept = () => page.waitForFunction(() => document.querySelector("textarea")?.value === "What is kept?");
  check("Back keeps what was written", await kept().then(() => true, () => false), await page.locator("body").innerText());
  check("on the page where it was written", page.url() === `${server.url}/ui/ask`, page.url());
  await ask(page, server.url, "What is asked? [[sim:ok;words=60]]");
  await page.goBack();
  await page.getByRole("heading", { name: "Ask this?" }).waitFor();
  check("the browser's Back shows the form that was sent", true);
  await page.goto(first);
  await page.locator(".report").waitFor();

  // Ask on, cancel, retry.
  await page.getByLabel("Question").fill("And why? [[sim:ok;words=60;hold]]");
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await page.getByRole("heading", { name: "Ask this?" }).waitFor();
  await accessible(page, "a question before it is asked");
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await page.waitForURL(/\/ui\/jobs\/[0-9a-f]{32}$/);
  const second = page.url();
  check("a follow-up is a job of its own", second !== first);
  await page.locator("#standing .state.running").waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Cancel the job" }).click();
  await page.locator("#standing .state.cancelled").waitFor();
  await page.getByRole("button", { name: "Retry" }).click();
  await page.getByRole("heading", { name: "Retry this job?" }).waitFor();
  const word = page.getByLabel(/Write again/);
  if (await word.count()) await word.fill("again");
  await page.getByRole("button", { name: "Retry" }).click();
  await page.waitForURL((url) => /\/ui\/jobs\/[0-9a-f]{32}$/.test(url.pathname) && url.href !== second);
  await page.locator("#standing .state.running").waitFor();
  check("a retry is a new job", true);
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Cancel the job" }).click();
  await page.locator("#standing .state.cancelled").waitFor();

  // Keys.
  await page.goto(`${server.url}/ui`);
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  check("j moves to a job", (await page.locator(".job.here").count()) === 1);
  await page.keyboard.press("?");
  await page.locator("dialog[open]").waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("/");
  check("/ searches", await page.evaluate(() => document.activeElement.id === "search"));
  await page.keyboard.type("leases");
  await page.keyboard.press("Enter");
  await page.waitForURL(/q=leases/);
  check("a search finds the question", (await page.locator(".job").count()) >= 1);
  await accessible(page, "a list");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/ui\/jobs\//);
  check("Enter opens it", true);

  await job(page, server.url);
  await list(page, server.url);

  // Two owners in two profiles.
  const { page: bobs } = await profile();
  await signIn(bobs, server.url, BOB);
  check("another owner sees none of it", (await bobs.locator(".job").count()) === 0);
  bobs.expected.push(/404/);
  await bobs.goto(first);
  await bobs.getByRole("heading", { name: "Not found" }).waitFor();

  // A report that attacks.
  const hostile = await ask(page, server.url, "<img src=x onerror=alert(1)><script>alert(2)</script> [[sim:inject]]");
  await page.locator("#standing .state.succeeded").waitFor({ timeout: 60000 });
  check("a hostile report runs nothing", !(await page.evaluate(() => globalThis.attacked)));
  check("and shows what it hides", (await page.locator("main").innerText()).includes("<U+202E>txt.exe"));
  check("and is text", (await page.locator("main script, main img, main iframe, main svg, main [onerror]").count()) === 0);
  await page.goto(`${server.url}/ui`);
  check("nor does its question", !(await page.evaluate(() => globalThis.attacked)));
  void hostile;

  // The one-time link, opened from its file as a desktop does.
  const { link, file } = await ownPage();
  check("the desktop is not given the link", !file.includes("code=") && link.length <= 80, file);
  const { page: own, context: ownContext } = await profile();
  await own.goto(pathToFileURL(file).href);
  await own.getByRole("heading", { name: "Jobs" }).waitFor();
  check("the file leads to the page", own.url() === new URL("/ui", link).href, own.url());
  const copy = await ownContext.cookies();
  own.expected.push(/401/);
  await own.getByRole("button", { name: "Sign out" }).click();
  await own.getByRole("heading", { name: "Signed out" }).waitFor();
  await ownContext.addCookies(copy);
  await own.goto(new URL("/ui", link).href);
  await own.getByRole("heading", { name: "Signed out" }).waitFor();
  check("a copy of the cookie is worthless after signing out", copy.length === 1);

  for (const path of ["/ui/ask", "/ui/spend", "/ui/conversations"]) {
    await page.goto(server.url + path);
    await accessible(page, path);
  }

  // The server is killed and started again under an open page.
  await page.goto(`${server.url}/ui`);
  page.expected.push(/ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY|Failed to load/);
  bobs.expected.push(/ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY|Failed to load/);
  await server.kill();
  await page.locator("#link").waitFor({ state: "visible" });
  check("a lost connection is shown", true);
  server = await serve(server.port);
  await page.locator("#link").waitFor({ state: "hidden", timeout: 30000 });
  check("and heals", true);

  // An hour of updates.
  const updates = Number(process.env.UPDATES);
  await page.goto(`${server.url}/ui`);
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.enable");
  const size = async () => {
    await session.send("HeapProfiler.collectGarbage");
    const { nodes } = await session.send("Memory.getDOMCounters");
    const { usedSize } = await session.send("Runtime.getHeapUsage");
    return { nodes, usedSize };
  };
  const update = (count) => page.evaluate(async (count) => { for (let n = 0; n < count; n += 1) await read(); }, count);
  await update(50);
  const before = await size();
  await update(updates);
  // One collection leaves what the last updates still hold; what leaked stays after any number.
  let after = await size();
  const held = () => after.nodes <= before.nodes + 150 && after.usedSize <= before.usedSize + 1_000_000;
  for (let tries = 0; !held() && tries < 50; tries += 1) {
    await page.waitForTimeout(200);
    after = await size();
  }
  check(`${updates} updates leave nothing behind`, held(), JSON.stringify({ before, after }));

  check("the browser had nothing to complain of", problems.length === 0, problems.join("\n"));
}

try {
  await main();
} catch (error) {
  console.error(`failed: ${error.stack}`, problems);
  process.exitCode = 1;
} finally {
  await end();
}
