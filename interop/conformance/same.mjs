// Compares what the runner wrote about a server with what it wrote about the same server behind `outlast wrap`.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

function results(folder) {
  const found = new Map();
  for (const entry of readdirSync(folder)) {
    const scenario = entry.replace(/^server-/, '').replace(/-\d{4}-\d{2}-\d{2}T.*$/, '');
    const checks = JSON.parse(readFileSync(join(folder, entry, 'checks.json'), 'utf8'));
    found.set(scenario, checks.map(check => `${check.id} ${check.status}`).sort());
  }
  return found;
}

const [plain, wrapped] = process.argv.slice(2).map(results);
let [differ, succeeded] = [0, 0];
for (const scenario of new Set([...plain.keys(), ...wrapped.keys()])) {
  const [before, after] = [plain, wrapped].map(found => found.get(scenario) ?? ['it was not run']);
  succeeded += before.filter(check => check.endsWith(' SUCCESS')).length;
  if (JSON.stringify(before) === JSON.stringify(after)) continue;
  differ += 1;
  console.error(`${scenario}:\n  without wrap: ${before.join(', ')}\n  with wrap:    ${after.join(', ')}`);
}
console.log(`${plain.size} scenarios, ${succeeded} checks that succeed without wrap; ${differ} scenarios differ with it`);
// A server that answers nothing would be the same as well.
process.exit(differ > 0 || succeeded < 10 ? 1 : 0);
