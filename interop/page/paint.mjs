// First paint of the list and of a search over the store in WORK/data, which scripts/bench has filled.
import { ANN, check, end, launch, profile, serve, signIn, simulate } from "./world.mjs";

const GOAL = 300;

// A page may be loaded before it is painted.
const firstPaint = () =>
  new Promise((done) => {
    const seen = (list) => list.getEntriesByName("first-contentful-paint").forEach((entry) => done(entry.startTime));
    new PerformanceObserver(seen).observe({ type: "paint", buffered: true });
  });

try {
  await simulate();
  const server = await serve();
  await launch();
  const { page } = await profile();
  await signIn(page, server.url, ANN);
  for (const [name, path] of [["the list", "/ui"], ["a state", "/ui?state=failed"], ["a search", "/ui?q=question"]]) {
    const painted = [];
    for (let round = 0; round < 7; round += 1) {
      await page.goto(server.url + path);
      painted.push(await page.evaluate(firstPaint));
    }
    painted.sort((one, other) => one - other);
    const middle = Math.round(painted[3]);
    console.log(`first paint of ${name}: ${middle} ms, ${await page.locator(".job").count()} jobs of ${await page.locator(".states b").first().innerText()}`);
    check(`first paint of ${name} under ${GOAL} ms`, middle < GOAL);
  }
} catch (error) {
  console.error(`failed: ${error.stack}`);
  process.exitCode = 1;
} finally {
  await end();
}
