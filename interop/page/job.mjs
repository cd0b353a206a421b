// A report with everything that models write, on a wide screen and on a phone, on the page and as a file (I3, I5).
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { accessible } from "./axe.mjs";
import { ask, check, profile } from "./world.mjs";

// The words of table cells that are on two lines.
const brokenWords = () => {
  const broken = [];
  for (const cell of document.querySelectorAll(".report td, .report th")) {
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
  return broken;
};
const tooWide = () => document.documentElement.scrollWidth > innerWidth;

async function readable(page, where) {
  const broken = await page.evaluate(brokenWords);
  check(`no word of a table is broken ${where}`, broken.length === 0, broken.join(" "));
  check(`nothing is wider than the screen ${where}`, !(await page.evaluate(tooWide)));
}

async function rich(page, url) {
  await page.setViewportSize({ width: 1280, height: 860 });
  await ask(page, url, "Which heat pumps last? [[sim:ok;words=900;sources=8;rich]]");
  await page.locator("#standing .state.succeeded").waitFor({ timeout: 60000 });
  await page.locator(".report table").waitFor();
  await readable(page, "on a wide screen");
  await accessible(page, "a job with a table");

  const box = (selector) => page.locator(selector).first().boundingBox();
  const [report, facts] = [await box("#report"), await box("#facts")];
  check("facts are beside the report", facts.x > report.x + report.width && facts.y < 300, JSON.stringify({ report, facts }));
  await page.locator(".report h2").last().scrollIntoViewIfNeeded();
  const contents = await box("#contents");
  check("contents stay in view", contents.y >= 0 && contents.y + 100 < 860, JSON.stringify(contents));
  await page.locator("#contents a").first().click();
  const heading = await box(`[id="${new URL(page.url()).hash.slice(1)}"]`);
  check("an entry leads to its heading", heading.y >= 0 && heading.y < 200, JSON.stringify(heading));

  const text = await page.locator("#report").innerText();
  check("amounts of money stay as they are", text.includes("between $5,000 and $9,000, or US$5-$9 per watt"), text);
  for (const raw of ["$$", "\\(", "$\\mathrm", "- [x]", "[^noise]", "~~"]) check(`no raw ${raw}`, !text.includes(raw), text);
  check("formulas are shown", (await page.locator("#report .math").count()) === 3);
  check("a bare address is a link", (await page.locator('#report a.url[href^="https://www.example.com/reports/2024"]').count()) === 1);
  check("a task that is done says so", await page.locator('#report [role="img"][aria-label="done"]').isVisible());
  check("Hebrew runs from right to left", (await page.locator("#report p", { hasText: "משאבות" }).evaluate((it) => getComputedStyle(it).direction)) === "rtl");
  check("numbers are aligned to the right", (await page.locator("#report td.right").first().evaluate((it) => getComputedStyle(it).textAlign)) === "end");

  // A citation shows its source while it is pointed at or has the focus.
  const cite = page.locator("#report p .cite").first();
  const shown = () => cite.evaluate((it) => getComputedStyle(it, "::after").content);
  check("a citation shows nothing by itself", (await shown()) === "none", await shown());
  const title = await page.locator(`[id="${(await cite.getAttribute("href")).slice(1)}"] .source-title`).innerText();
  await cite.hover();
  check("it shows its source when pointed at", (await shown()).includes(title.slice(0, 20)), `${await shown()} ${title}`);
  await page.mouse.move(0, 0);
  await cite.focus();
  check("and when it has the focus", (await shown()).includes(title.slice(0, 20)), await shown());
  const card = await page.locator("#sources li").first().innerText();
  check("a source has its site", /^[\w.-]+\.\w+( ·|$)/m.test(card), card);

  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.locator("#actions").getByRole("button", { name: "Copy" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  check("the report is copied as Markdown", copied.includes("## Comparison of countries") && !copied.startsWith("---"), copied.slice(0, 200));
  await page.emulateMedia({ media: "print" });
  check("on paper there are no buttons", !(await page.locator("#actions").isVisible()) && !(await page.locator(".top").isVisible()));
  await page.emulateMedia({ media: null });

  await page.setViewportSize({ width: 390, height: 844 });
  await readable(page, "on a phone");
  const top = async (selector) => (await box(selector)).y;
  const order = [await top("#facts"), await top("#contents"), await top("#report"), await top("#sources"), await top("#timeline")];
  check("on a phone facts come first, and sources after the report", order.every((y, at) => !at || y > order[at - 1]), order.join(" "));
  check("a wide table scrolls", await page.locator(".report .table").evaluate((it) => it.scrollWidth > it.clientWidth));
  await accessible(page, "a job on a phone");

  // The file, opened from a disk: its own policy holds there.
  const file = join(process.env.WORK, "report.html");
  const address = await page.getByRole("link", { name: "HTML" }).getAttribute("href");
  writeFileSync(file, await page.evaluate(async (address) => (await fetch(address)).text(), address));
  const { page: opened, context } = await profile({ viewport: { width: 390, height: 844 } });
  await opened.goto(pathToFileURL(file).href);
  await readable(opened, "in a file");
  await accessible(opened, "a file");
  await context.close();
  await page.setViewportSize({ width: 1280, height: 860 });
}

// A lost submit: its command line is code, and the effect of the button is next to it.
async function unknown(page, url) {
  await ask(page, url, "Was it paid? [[sim:drop_submit]]");
  await page.locator("#standing .state.failed").waitFor({ timeout: 60000 });
  const notice = page.locator("#result .notice");
  const text = await notice.innerText();
  check("a command line is code", (await notice.locator("code").first().innerText()).startsWith("outlast jobs retry") && !text.includes("`"), text);
  check("the effect of Retry is explained", text.includes("Retry begins a new run, which may be paid for a second time"), text);
  await accessible(page, "a lost submit");
}

async function clock(page, url) {
  await ask(page, url, "How long does it take? [[sim:ok;words=60;hold]]");
  const clock = page.locator("#standing .clock");
  await clock.waitFor();
  const before = await clock.innerText();
  await page.waitForFunction((before) => document.querySelector("#standing .clock")?.textContent !== before, before);
  check("a clock runs on a running job", true);
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Cancel the job" }).click();
  await page.locator("#standing .state.cancelled").waitFor();
}

export async function job(page, url) {
  await rich(page, url);
  await unknown(page, url);
  await clock(page, url);
}
