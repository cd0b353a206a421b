// The TypeScript client and the questions of jobs (M4): a workflow command asks, and the user of the client accepts, declines
// or closes the form. Every check is one line, `ok` or `FAIL`.
import assert from 'node:assert/strict';
import { mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const names = ['transport', 'era', 'outlast', 'config', 'url', 'token'];
const { values: given } = parseArgs({ options: Object.fromEntries(names.map(name => [name, { type: 'string' }])) });
const MODE = { legacy: 'legacy', '2026-07-28': { pin: '2026-07-28' } }[given.era];
const nonce = `${given.transport}-${given.era}-${process.pid}`;

let failed = 0;
async function check(name, doing) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error('no end after 60 s')), 60_000); });
  let problem;
  try {
    await Promise.race([doing(), late]);
  } catch (error) {
    problem = `FAIL ${error?.constructor?.name}: ${error?.message}`.replace(/\s+/g, ' ').slice(0, 400);
    failed += 1;
  } finally {
    clearTimeout(timer);
  }
  process.stdout.write(['typescript', given.transport, given.era, name, problem ?? 'ok'].join('\t') + '\n');
}

/** Calls the workflow; `react` answers its forms, and without it the client cannot show any. Returns the text and the forms. */
async function ask(message, react) {
  const capabilities = react ? { elicitation: { form: {} } } : {};
  const client = new Client({ name: 'outlast-interop', version: '1' }, { versionNegotiation: { mode: MODE }, capabilities });
  const forms = [];
  if (react) {
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      forms.push(params);
      return react(params);
    });
  }
  const data = mkdtempSync(join(tmpdir(), 'outlast-questions-'));
  let transport;
  if (given.transport === 'http') {
    const requestInit = { headers: { Authorization: `Bearer ${given.token}` } };
    transport = new StreamableHTTPClientTransport(new URL(given.url), { requestInit });
  } else {
    const env = { OUTLAST_DATA_DIR: data, OUTLAST_DETACH: 'false', PATH: process.env.PATH };
    const stderr = openSync(join(data, 'log'), 'w');
    transport = new StdioClientTransport({ command: given.outlast, args: ['serve', '--config', given.config, '--tools', 'research-jobs'], env, stderr });
  }
  await client.connect(transport);
  try {
    const result = await client.callTool({ name: 'deploy', arguments: { message: `${message} ${nonce}` } }, { timeout: 30_000 });
    return { text: result.content[0].text, isError: result.isError === true, forms };
  } finally {
    await client.close();
    rmSync(data, { recursive: true, force: true });
  }
}

await check('accept', async () => {
  const { text, forms } = await ask('accept', () => ({ action: 'accept', content: { answer: 'yes' } }));
  assert.equal(text, 'was yes\n');
  assert.equal(forms.length, 1);
  assert.equal(forms[0].message, 'Deploy?');
  assert.deepEqual(forms[0].requestedSchema.properties.answer.enum, ['yes', 'no']);
});
await check('decline is no', async () => {
  const { text } = await ask('decline', () => ({ action: 'decline' }));
  assert.equal(text, 'was no\n');
});
await check('no elicitation', async () => {
  const { text, isError } = await ask('told');
  assert.ok(isError, text);
  assert.match(text, /^NOT_ANSWERED: .*outlast jobs answer [0-9a-f]{32} TEXT/);
});
process.exitCode = failed ? 1 : 0;
