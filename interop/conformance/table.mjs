// Reads what the runner wrote, prints one table, and sees that nothing passed by not running: a scenario without a
// single check that succeeded is a failure, unless it is one the runner itself leaves out.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const [folder] = process.argv.slice(2);
// The runner skips it until it is rewritten for subscriptions/listen; status notifications are optional.
const EMPTY_UPSTREAM = ['tasks-status-notifications'];
const TASKS = [
  'lifecycle', 'capability-negotiation', 'wire-fields', 'request-state-removal', 'mrtr-input', 'request-headers',
  'dispatch-and-envelope', 'status-notifications', 'required-task-error', 'mrtr-composition',
].map(name => `tasks-${name}`);

function expected(file) {
  const listed = new Map();
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const entry = /^\s+- (\S+)(?:\s+# (.+))?$/.exec(line);
    if (!entry) continue;
    if (!entry[2]) throw new Error(`${file}: ${entry[1]} has no reason`);
    listed.set(entry[1], entry[2]);
  }
  return listed;
}

const lists = {
  fixtures: expected('interop/conformance/expected-failures.yml'),
  outlast: expected('interop/conformance/expected-failures-outlast.yml'),
};
const problems = [];
const used = new Set();
const ran = new Set();
const lines = [];
for (const run of readdirSync(folder).sort()) {
  const [target, revision] = run.split('_');
  for (const entry of readdirSync(join(folder, run)).sort()) {
    const scenario = entry.replace(/^server-/, '').replace(/-\d{4}-\d{2}-\d{2}T.*$/, '');
    const checks = JSON.parse(readFileSync(join(folder, run, entry, 'checks.json'), 'utf8'));
    const count = { SUCCESS: 0, expected: 0, unexpected: 0 };
    for (const check of checks) {
      if (check.status === 'SUCCESS') count.SUCCESS += 1;
      if (check.status !== 'FAILURE' && check.status !== 'WARNING') continue;
      const name = [scenario, `${scenario}:${check.id}`].find(name => lists[target].has(name));
      if (name) used.add(`${target} ${name}`);
      else problems.push(`${target} ${revision} ${scenario}: ${check.id}: ${check.errorMessage}`);
      count[name ? 'expected' : 'unexpected'] += 1;
    }
    ran.add(`${target} ${scenario}`);
    const empty = count.SUCCESS === 0 && !EMPTY_UPSTREAM.includes(scenario);
    if (empty) problems.push(`${target} ${revision} ${scenario}: no check succeeded`);
    lines.push([target, revision, scenario, count.SUCCESS, count.expected, count.unexpected]);
  }
}
for (const scenario of TASKS) if (!ran.has(`fixtures ${scenario}`)) problems.push(`${scenario} was not run`);
for (const [target, list] of Object.entries(lists)) {
  for (const name of list.keys()) {
    if (!used.has(`${target} ${name}`)) problems.push(`${name} is expected to fail and did not: take it off the list`);
  }
}

const row = cells => console.log(cells.map((cell, at) => String(cell).padEnd([10, 12, 48, 9, 18, 0][at])).join(''));
row(['server', 'revision', 'scenario', 'passed', 'failed, expected', 'failed']);
lines.forEach(row);
const sum = at => lines.reduce((all, line) => all + line[at], 0);
row(['', '', 'all', sum(3), sum(4), sum(5)]);
if (problems.length > 0) {
  console.error(`\n${problems.join('\n')}`);
  process.exit(1);
}
