// One TypeScript client against one outlast: every check is one line, `ok` or `FAIL` with what was wrong. The client
// validates results against their schemas by itself; whatever it or its validator prints is a failure.
import assert from 'node:assert/strict';
import { mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { TASKS, callAsTask } from './tasks.mjs';

const { values: given } = parseArgs({
  options: {
    ...Object.fromEntries(['transport', 'era', 'outlast', 'url', 'queued-url', 'token'].map(name => [name, { type: 'string' }])),
    // Several servers behind one address.
    replicas: { type: 'boolean', default: false },
  },
});
const TOOLS = [
  'cancel_research', 'check_citations', 'get_conversation_histories', 'get_conversation_history', 'list_conversations', 'perplexity_ask',
  'perplexity_deep_research', 'perplexity_deep_research_followup', 'perplexity_reason', 'perplexity_research',
  'perplexity_research_cancel', 'perplexity_research_poll', 'perplexity_research_start', 'perplexity_search',
  'perplexity_search_followup', 'search_research',
];
const MODE = { legacy: 'legacy', auto: 'auto', '2026-07-28': { pin: '2026-07-28' } }[given.era];
const VERSION = given.era === 'legacy' ? '2025-11-25' : '2026-07-28';
const modern = VERSION === '2026-07-28';
const nonce = `${given.transport}-${given.era}-${process.pid}`;
const info = { name: 'outlast-interop', version: '1' };
const sim = (words, marker) => `${words} [[sim:${marker}]]`;

const said = [];
for (const level of ['debug', 'info', 'warn', 'error', 'trace']) console[level] = (...words) => said.push(words.join(' '));
process.on('warning', warning => said.push(`${warning.name}: ${warning.message}`));
const stderr = process.stderr.write.bind(process.stderr);
process.stderr.write = (text, ...rest) => { said.push(String(text)); return stderr(text, ...rest); };

let failed = 0;
function row(check, problem) {
  if (problem) failed += 1;
  const words = problem ? `FAIL ${problem}`.replace(/\s+/g, ' ').slice(0, 400) : 'ok';
  process.stdout.write(['typescript', given.transport, given.era, check, words].join('\t') + '\n');
}

async function check(name, doing) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error('no end after 60 s')), 60_000); });
  try {
    await Promise.race([doing(), late]);
    row(name);
  } catch (error) {
    const at = /interop\.mjs:(\d+)/.exec(error?.stack ?? '')?.[1];
    row(name, `${error?.constructor?.name} at line ${at}: ${error?.message}`);
  } finally {
    clearTimeout(timer);
  }
}

/** A connected client of one of the two servers: the one that holds calls, or the one that queues them. */
async function connected(doing, { server = 'blocking', capabilities = {} } = {}) {
  const client = new Client(info, { versionNegotiation: { mode: MODE }, capabilities });
  client.onerror = error => {
    // In the old era a call is given up by a message of its own, which another server than the call's may get. That one cannot end
    // the call, and its answer comes after all.
    if (given.replicas && !modern && error.message.startsWith('Received a response for an unknown message ID')) return;
    said.push(`client: ${error.message}`);
  };
  const data = mkdtempSync(join(tmpdir(), 'outlast-interop-'));
  let transport;
  if (given.transport === 'http') {
    const url = server === 'blocking' ? given.url : given['queued-url'];
    const requestInit = { headers: { Authorization: `Bearer ${given.token}` } };
    transport = new StreamableHTTPClientTransport(new URL(url), { requestInit });
  } else {
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('PERPLEXITY_')));
    Object.assign(env, {
      OUTLAST_DATA_DIR: data,
      OUTLAST_TOOLS: 'research,research-jobs,perplexity',
      PERPLEXITY_ENABLE_ASYNC_DEEP_RESEARCH: String(server === 'queued'),
    });
    const log = openSync(join(data, 'log'), 'w');
    transport = new StdioClientTransport({ command: given.outlast, args: ['serve'], env, stderr: log });
  }
  await client.connect(transport);
  try {
    await doing(client, transport);
  } finally {
    if (given.transport === 'http' && !modern) await transport.terminateSession();
    await client.close();
    rmSync(data, { recursive: true, force: true });
  }
}

const call = (client, name, args, options) => client.callTool({ name, arguments: args }, options);

await connected(async client => {
  await check('connect', async () => {
    assert.equal(client.getNegotiatedProtocolVersion(), VERSION);
    assert.equal(client.getServerVersion()?.name, 'outlast');
    assert.match(client.getInstructions(), /durable/);
    assert.equal(TASKS in (client.getServerCapabilities().extensions ?? {}), modern);
  });

  await check('list', async () => {
    const { tools } = await client.listTools();
    assert.deepEqual(tools.map(tool => tool.name).sort(), TOOLS);
    for (const tool of tools) {
      assert.ok(tool.title && tool.description && tool.annotations && tool.outputSchema, tool.name);
      assert.ok(!JSON.stringify([tool.inputSchema, tool.outputSchema]).includes('"format":'), tool.name);
    }
  });

  let conversationId;
  await check('blocking call with progress', async () => {
    const told = [];
    const query = sim(`What is in a grain of sand, ${nonce}?`, 'ok;words=200;delay_ms=3000');
    // Progress keeps the call alive: by itself it would be given up after 2.5 s.
    const patience = { timeout: 2500, resetTimeoutOnProgress: true, maxTotalTimeout: 30_000 };
    const options = { ...patience, onprogress: progress => told.push(progress) };
    const answer = await call(client, 'perplexity_deep_research', { query, reasoning_effort: 'low' }, options);
    assert.ok(!answer.isError, JSON.stringify(answer.content));
    assert.equal(answer.structuredContent.status, 'completed');
    assert.ok(answer.content.some(block => block.text.includes(answer.structuredContent.rawResultText)));
    assert.ok(told.length >= 2 && told.every((one, at) => at === 0 || one.progress > told[at - 1].progress));
    assert.ok(told.every(one => [100, undefined].includes(one.total) && one.message));
    ({ conversationId } = answer.structuredContent);
  });

  await check('history', async () => {
    const { structuredContent: history } = await call(client, 'get_conversation_history', { conversationId });
    assert.deepEqual(history.messages.map(message => message.role), ['user', 'assistant']);
    const several = await call(client, 'get_conversation_histories', { conversationIds: [conversationId] });
    assert.ok(several.structuredContent[conversationId].conversation);
    const query = sim('And then?', 'ok;words=50;delay_ms=0');
    const follow = await call(client, 'perplexity_search_followup', { conversationId, query });
    assert.equal(follow.structuredContent.conversationId, conversationId);
    const { structuredContent: list } = await call(client, 'list_conversations', { limit: 5 });
    const found = list.conversations.find(one => one.conversationId === conversationId);
    assert.equal(found?.messageCount, 4);
  });

  await check('start, poll, cancel', async () => {
    const start = async marker => {
      const messages = [{ role: 'user', content: sim(`A job, ${nonce}`, marker) }];
      const { structuredContent: started } = await call(client, 'perplexity_research_start', { messages });
      assert.ok(['CREATED', 'IN_PROGRESS'].includes(started.status), started.status);
      return { jobId: started.jobId };
    };
    const done = await call(client, 'perplexity_research_poll', await start('ok;words=100;delay_ms=500'));
    assert.equal(done.structuredContent.status, 'COMPLETED');
    assert.match(done.structuredContent.response, /Citations:/);
    const job = await start('stuck');
    const cancelled = await call(client, 'perplexity_research_cancel', job);
    const after = await call(client, 'perplexity_research_poll', job);
    assert.equal(after.structuredContent.status, cancelled.structuredContent.status);
    const unknown = await call(client, 'perplexity_research_poll', { jobId: '0'.repeat(32) });
    assert.ok(!unknown.isError);
  });

  await check('search and ask', async () => {
    const found = await call(client, 'perplexity_search', { query: sim('Find it', 'ok;words=50;delay_ms=0') });
    assert.equal(found.structuredContent.status, 'completed');
    const messages = [{ role: 'user', content: sim('Tell me', 'ok;words=50;delay_ms=0') }];
    for (const tool of ['perplexity_ask', 'perplexity_reason', 'perplexity_research']) {
      const told = await call(client, tool, { messages });
      assert.equal(told.structuredContent.response, told.content[0].text);
    }
  });

  await check('errors', async () => {
    const refused = async (tool, args, code) => {
      const answer = await call(client, tool, args);
      assert.ok(answer.isError && answer.content[0].text.startsWith(`${code}: `), JSON.stringify(answer));
      assert.equal(answer._meta['outlast/error'].code, code);
      assert.equal(answer.structuredContent, undefined);
    };
    await refused('perplexity_deep_research', { query: '' }, 'VALIDATION_ERROR');
    await refused('perplexity_deep_research', { query: 'x', colour: 'red' }, 'VALIDATION_ERROR');
    await refused('get_conversation_history', { conversationId: 'f'.repeat(32) }, 'CONVERSATION_NOT_FOUND');
    await refused('perplexity_deep_research', { query: sim(nonce, 'quota') }, 'QUOTA_EXHAUSTED');
    await assert.rejects(call(client, 'no_such_tool', {}), error => error.code === -32602);
  });

  await check('give up, call again', async () => {
    const query = { query: sim(`Worth waiting for, ${nonce}`, 'ok;words=100;delay_ms=2500') };
    const began = performance.now();
    await assert.rejects(call(client, 'perplexity_deep_research', query, { timeout: 1000 }));
    assert.ok(performance.now() - began < 2500);
    const answer = await call(client, 'perplexity_deep_research', query);
    assert.equal(answer.structuredContent.status, 'completed');
    assert.ok(performance.now() - began < 4500, 'the research was begun anew');
  });
});

await connected(async client => {
  await check('queued, awaited', async () => {
    const told = [];
    const query = sim(`Later, ${nonce}`, 'ok;words=100;delay_ms=2500');
    const { structuredContent: queued } = await call(client, 'perplexity_deep_research', { query });
    assert.equal(queued.responseId, 'queued');
    const wanted = { conversationIds: [queued.conversationId] };
    const onprogress = progress => told.push(progress.progress);
    const waited = await call(client, 'await_conversation_histories', wanted, { onprogress });
    assert.equal(waited.structuredContent[queued.conversationId].status.status, 'completed');
    assert.ok(told.length >= 2 && told.every((value, at) => at === 0 || value > told[at - 1]), String(told));
  });
}, { server: 'queued' });

await connected(async (client, transport) => {
  const query = sim(`As a task, ${nonce}`, 'ok;words=100;delay_ms=2500');
  if (!modern) {
    await check('no task in this era', async () => {
      const answer = await call(client, 'perplexity_deep_research', { query });
      assert.equal(answer.structuredContent.status, 'completed');
    });
    return;
  }
  await check('task', async () => {
    const asTask = (name, args, how) => callAsTask(client, transport, info, name, args, how);
    const { result, sent } = await asTask('perplexity_deep_research', { query });
    assert.equal(result.structuredContent.status, 'completed');
    assert.ok(sent.includes('tasks/get'), String(sent));
    const stuck = { messages: [{ role: 'user', content: '[[sim:stuck]]' }] };
    const cancelled = await asTask('perplexity_research', stuck, { cancel: true });
    assert.match(JSON.stringify(cancelled.outcome), /cancelled/);
    const failing = await asTask('perplexity_deep_research', { query: sim(nonce, 'quota') });
    assert.ok(failing.result.isError && failing.result.content[0].text.startsWith('QUOTA_EXHAUSTED'));
  });
}, { capabilities: { extensions: { [TASKS]: {} } } });

row('no warning', said.join('; '));
process.exit(failed ? 1 : 0);
