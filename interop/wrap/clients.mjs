// A TypeScript client with short limits and a server behind `outlast wrap`; the checks of clients.py.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [outlast, server] = process.argv.slice(2);
const SLOW_MS = 2400;
const text = result => result.content.map(block => block.text).join(' ');
const call = (client, name, n, ms, options) => client.callTool({ name, arguments: { n, ms } }, options);

async function world(after, doing) {
  const folder = mkdtempSync(join(tmpdir(), 'outlast-wrap-'));
  const ledger = join(folder, 'ledger');
  writeFileSync(ledger, '');
  const env = { LEDGER: ledger, OUTLAST_DATA_DIR: join(folder, 'data'), HOME: folder, PATH: process.env.PATH };
  const args = ['wrap', '--after', after, '--idle-ms', '1000', '--', 'python3', server];
  const client = new Client({ name: 'wrap', version: '1' }, { versionNegotiation: { mode: 'legacy' } });
  await client.connect(new StdioClientTransport({ command: outlast, args, env, stderr: 'ignore' }));
  const noted = what => readFileSync(ledger, 'utf8').split('\n').filter(line => line === what).length;
  try {
    return await doing(client, noted);
  } finally {
    await client.close();
  }
}

async function eventually(what) {
  for (let tries = 0; !what(); tries++) {
    assert(tries < 600, 'it never happened');
    await sleep(50);
  }
}

async function patient(client, noted, tool, n) {
  await client.listTools();
  let result, calls = 0;
  do {
    result = await call(client, tool, n, SLOW_MS, { timeout: 2000 });
    calls++;
    if (result.isError) assert.match(text(result), /still running/);
  } while (result.isError && calls < 50);
  assert.equal(text(result), `done ${n}`);
  if (tool === 'measured') assert.deepEqual(result.structuredContent, { n });
  assert.equal(noted(`start ${n}`), 1);
  return `${calls} calls`;
}

async function timedOut(client, noted, n) {
  await assert.rejects(call(client, 'work', n, SLOW_MS, { timeout: 1000 }));
  const result = await call(client, 'work', n, SLOW_MS, { timeout: 20_000 });
  assert.equal(text(result), `done ${n}`);
  assert.equal(noted(`start ${n}`), 1);
  assert.equal(noted(`cancelled ${n}`), 0);
}

async function cancelled(client, noted, n) {
  const person = new AbortController();
  const calling = call(client, 'work', n, 20_000, { signal: person.signal });
  await eventually(() => noted(`start ${n}`));
  person.abort('stopped by the user');
  await assert.rejects(calling);
  await eventually(() => noted(`cancelled ${n}`));
}

const checks = [
  ['slow tool, called again', '500ms', (client, noted) => patient(client, noted, 'work', 1)],
  ['slow tool with a schema', '500ms', (client, noted) => patient(client, noted, 'measured', 2)],
  ['a time-out is kept back', '30s', (client, noted) => timedOut(client, noted, 4)],
  ['a cancel reaches the server', '30s', (client, noted) => cancelled(client, noted, 5)],
];
let failed = 0;
for (const [name, after, check] of checks) {
  try {
    const said = await world(after, check);
    console.log(`typescript  ${name.padEnd(30)} ok ${said ?? ''}`);
  } catch (error) {
    failed++;
    console.log(`typescript  ${name.padEnd(30)} FAIL ${error}`.slice(0, 600));
  }
}
process.exit(failed ? 1 : 0);
