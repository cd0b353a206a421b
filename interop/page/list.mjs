// The list: search while typing, filters, several jobs at once, and all of it without JavaScript (I2, I4).
import { accessible } from "./axe.mjs";
import { ANN, ask, check, profile, signIn } from "./world.mjs";

async function typing(page, url) {
  await page.goto(`${url}/ui`);
  await page.evaluate(() => { globalThis.sameDocument = true; });
  const all = await page.locator(".job").count();
  await page.locator("#search").pressSequentially("paid");
  await page.waitForFunction((all) => document.querySelectorAll(".job").length < all, all);
  check("a search finds while one types", (await page.locator(".job").count()) === 1 && /q=paid/.test(page.url()), page.url());
  check("without another document", await page.evaluate(() => globalThis.sameDocument === true));
  await page.locator("#search").fill("zeppelin");
  await page.getByText("Nothing fits these filters.").waitFor();
  check("what is typed stays", (await page.locator("#search").inputValue()) === "zeppelin");
  await page.locator("#search").fill("");
  await page.waitForFunction((all) => document.querySelectorAll(".job").length === all, all);
  await page.getByLabel("Failure").selectOption("SUBMIT_UNKNOWN");
  await page.waitForURL(/code=SUBMIT_UNKNOWN/);
  await page.waitForFunction(() => document.querySelectorAll(".job").length === 1);
  check("a code filters and is shown", (await page.locator(".job .code").innerText()) === "SUBMIT_UNKNOWN");
  await page.getByLabel("Failure").selectOption("");
  await page.waitForFunction((all) => document.querySelectorAll(".job").length === all, all);
  check("and everything is back without it", !page.url().includes("q="));
}

async function several(page, url) {
  for (const name of ["one", "two"]) await ask(page, url, `Fails ${name}? [[sim:fail]]`);
  await page.locator("#standing .state.failed").waitFor({ timeout: 60000 });
  await page.goto(`${url}/ui`);
  const retry = page.locator("#several").getByRole("button", { name: "Retry" });
  check("nothing is done without a selection", await retry.isDisabled());
  for (const name of ["Fails one?", "Fails two?", "Was it paid?"]) await page.getByLabel(`Select ${name}`).check();
  check("the selected jobs are counted", (await page.locator("#selected").innerText()).startsWith("3 "));
  await page.evaluate(() => read());
  check("an update keeps the selection", (await page.locator(".pick:checked").count()) === 3);
  await accessible(page, "a list with a selection");
  await retry.click();
  await page.getByRole("heading", { name: "Retry these jobs?" }).waitFor();
  const text = await page.locator("main").innerText();
  check("the sum is shown", /Retry 2 jobs: \$[\d.]+ together, usually/.test(text), text);
  check("a job that needs consent is left out", text.includes("Left out: 1 job") && text.includes("--again") && !text.includes("Was it paid?"), text);
  await accessible(page, "several jobs before a retry");
  await page.getByRole("link", { name: "Back" }).click();
  await page.getByRole("heading", { name: "Jobs" }).waitFor();
}

// Everything is a form or a link.
async function plain(url) {
  const { page, context } = await profile({ javaScriptEnabled: false });
  await signIn(page, url, ANN);
  await page.getByLabel("Search questions and reports").fill("fails");
  await page.getByRole("button", { name: "Filter" }).click();
  check("a filter needs no JavaScript", (await page.locator(".job").count()) === 2, page.url());
  for (const box of await page.locator(".pick").all()) await box.check();
  await page.locator("#several").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete them" }).click();
  await page.getByRole("heading", { name: "Jobs" }).waitFor();
  check("nor does deleting several", (await page.getByText("Fails one?").count()) === 0);
  await page.getByRole("link", { name: "Which heat pumps last?" }).click();
  await page.locator("#contents a").first().click();
  check("nor does the table of contents", /#h1-\d+$/.test(page.url()), page.url());
  await context.close();
}

export async function list(page, url) {
  await typing(page, url);
  await several(page, url);
  await plain(url);
}
