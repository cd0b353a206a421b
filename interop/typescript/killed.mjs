// One TypeScript client whose servers are behind a proxy, one of which is killed while calls are under way. It prints `ready` when
// they are, then one line for each check, as interop.mjs does, and `broken N`: the calls that ended with the server.
import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { TASKS, callAsTask } from './tasks.mjs';

const { values: given } = parseArgs({
  options: Object.fromEntries(['era', 'url', 'token'].map(name => [name, { type: 'string' }])),
});
const CALLS = 6;
const modern = given.era !== 'legacy';
const mode = { legacy: 'legacy', auto: 'auto', '2026-07-28': { pin: '2026-07-28' } }[given.era];
const nonce = `killed-${given.era}-${process.pid}`;
const info = { name: 'outlast-interop', version: '1' };
const sim = words => `${words}, ${nonce} [[sim:ok;words=100;delay_ms=30000]]`;
// A lost connection is told to the caller of each call; here it is expected.
for (const level of ['warn', 'error']) console[level] = () => {};

let failed = 0;
async function check(name, doing) {
  let outcome = 'ok';
  try {
    await doing();
  } catch (error) {
    failed += 1;
    outcome = `FAIL ${error?.constructor?.name}: ${error?.message}`.replace(/\s+/g, ' ').slice(0, 400);
  }
  process.stdout.write(['typescript', 'http', given.era, name, outcome].join('\t') + '\n');
}

async function connected(capabilities = {}) {
  const client = new Client(info, { versionNegotiation: { mode }, capabilities });
  client.onerror = () => {};
  const requestInit = { headers: { Authorization: `Bearer ${given.token}` } };
  const transport = new StreamableHTTPClientTransport(new URL(given.url), { requestInit });
  await client.connect(transport);
  return { client, transport };
}

let broken = 0;
/** A call that ends with its server is made again, as a client's user would. */
async function onceMore(call) {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      broken += 1;
      if (broken > 10 * CALLS) throw new Error(`no server answers: ${error.message}`);
      await new Promise(resolve => setTimeout(resolve, 200));
    }
  }
}

const { client } = await connected();
const numbers = Array.from({ length: CALLS }, (_, number) => number);
const tool = (name, args, options) => client.callTool({ name, arguments: args }, options);
const patience = { timeout: 90_000 };

const jobs = [];
for (const number of numbers) {
  const messages = [{ role: 'user', content: sim(`Job ${number}`) }];
  jobs.push((await tool('perplexity_research_start', { messages })).structuredContent.jobId);
}
const polls = jobs.map(jobId => onceMore(() => tool('perplexity_research_poll', { jobId }, patience)));
const told = [];
const calls = numbers.map(number => {
  let onprogress;
  told.push(new Promise(resolve => { onprogress = () => resolve(); }));
  return onceMore(() => tool('perplexity_deep_research', { query: sim(`Call ${number}`) }, { ...patience, onprogress }));
});
// In the newest era a task, in the older one more held call: the same for the caller.
const asking = await connected(modern ? { extensions: { [TASKS]: {} } } : {});
const query = sim('Asked for at last');
const last = onceMore(async () => {
  if (!modern) return asking.client.callTool({ name: 'perplexity_deep_research', arguments: { query } }, patience);
  return (await callAsTask(asking.client, asking.transport, info, 'perplexity_deep_research', { query })).result;
});
await Promise.all(told);
process.stdout.write('ready\n');

await check('polls go on', async () => {
  for (const answer of await Promise.all(polls)) assert.equal(answer.structuredContent.status, 'COMPLETED');
});
await check('held calls go on', async () => {
  for (const { isError, content, structuredContent: shape } of await Promise.all(calls)) {
    assert.ok(!isError, JSON.stringify(content));
    assert.equal(shape.status, 'completed');
    // Whichever server answers this is another one than carried the call, two times out of three.
    const history = await tool('get_conversation_history', { conversationId: shape.conversationId });
    assert.equal(history.structuredContent.messages.at(-1).role, 'assistant');
  }
});
await check('task, or a held call', async () => assert.equal((await last).structuredContent.status, 'completed'));
process.stdout.write(`broken\t${broken}\n`);
process.exit(failed ? 1 : 0);
