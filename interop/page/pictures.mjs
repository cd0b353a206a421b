// Every view, light and dark, wide and narrow.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { ANN, BOB, ask, end, launch, profile, serve, signIn, simulate } from "./world.mjs";

const folder = process.env.PICTURES;
mkdirSync(folder, { recursive: true });
try {
  await simulate();
  const server = await serve(0, { OUTLAST_MAX_USD_PER_DAY: "25" });
  await launch();
  const { page, context } = await profile();
  await signIn(page, server.url, ANN);
  const done = await ask(page, server.url, "How do heat pumps age in cold climates? [[sim:ok;words=900;rich]]");
  await page.locator("#standing .state.succeeded").waitFor({ timeout: 60000 });
  for (const question of ["Which batteries survive ten winters? [[sim:ok;words=200]]", "What does the grid cost per house? [[sim:fail]]", "Who maintains the oldest tidal plants? [[sim:drop_submit]]"]) {
    await ask(page, server.url, question);
    await page.locator("#standing .state.succeeded, #standing .state.failed").waitFor({ timeout: 60000 });
  }
  const failed = page.url();
  const running = await ask(page, server.url, "How much of Europe's heat is district heat? [[sim:ok;words=60;hold]]");
  await page.locator("#standing progress").waitFor();
  const cookies = await context.cookies();
  const views = { list: "/ui", search: "/ui?q=batteries", job: new URL(done).pathname, running: new URL(running).pathname, failed: new URL(failed).pathname, conversations: "/ui/conversations", ask: "/ui/ask", spend: "/ui/spend", "none-found": "/ui?q=zeppelin", "no-such-job": new URL(done).pathname.replace(/[^/]+$/, "0".repeat(32)) };
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [1280, 390]) {
      const { context: other, page } = await profile({ colorScheme, viewport: { width, height: width === 390 ? 844 : 860 } });
      page.expected.push(/401/, /404/);
      await page.goto(`${server.url}/ui`);
      await page.screenshot({ path: join(folder, `sign-in-${colorScheme}-${width}.png`) });
      await other.addCookies(cookies);
      for (const [name, path] of Object.entries(views)) {
        await page.goto(server.url + path);
        await page.waitForTimeout(100);
        // What tells the simulated provider how to behave is no part of a question.
        await page.evaluate(() => {
          const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
          while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replace(/ ?\[\[sim:[^\]]*\]\]/g, "");
        });
        const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
        if (wide) { console.error(`${name} is wider than ${width}`); process.exitCode = 1; }
        const fullPage = ["job", "failed"].includes(name);
        await page.screenshot({ path: join(folder, `${name}-${colorScheme}-${width}.png`), fullPage });
        if (name === "job") {
          await page.locator("#report p .cite").nth(3).hover();
          await page.screenshot({ path: join(folder, `cite-${colorScheme}-${width}.png`) });
        }
      }
      await page.goto(`${server.url}/ui/ask`);
      await page.getByLabel("Question").fill("Does a second heat pump pay?");
      await page.getByRole("button", { name: "Ask", exact: true }).click();
      await page.screenshot({ path: join(folder, `confirm-${colorScheme}-${width}.png`) });
      await page.goto(`${server.url}/ui?state=failed`);
      for (const box of await page.locator(".pick").all()) await box.check();
      await page.screenshot({ path: join(folder, `selected-${colorScheme}-${width}.png`) });
      await page.locator("#several").getByRole("button", { name: "Retry" }).click();
      await page.screenshot({ path: join(folder, `several-${colorScheme}-${width}.png`) });
      await other.clearCookies();
      await signIn(page, server.url, BOB);
      await page.goto(`${server.url}/ui`);
      await page.screenshot({ path: join(folder, `empty-${colorScheme}-${width}.png`) });
      await other.close();
    }
  }
  console.log(folder);
} finally {
  await end();
}
