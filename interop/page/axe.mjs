// What axe-core finds on a page.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { check } from "./world.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function accessible(page, name) {
  // Through the debugger: the page's own policy would not let it in.
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: axe });
  const { result } = await session.send("Runtime.evaluate", { expression: "axe.run().then((found) => JSON.stringify(found.violations))", awaitPromise: true });
  const serious = JSON.parse(result.value).filter((found) => ["serious", "critical"].includes(found.impact));
  const told = serious.map((found) => `${found.id}: ${found.nodes.map((node) => node.html).join(" ")}`);
  check(`axe finds nothing serious on ${name}`, serious.length === 0, told.join("\n"));
  await session.detach();
}
