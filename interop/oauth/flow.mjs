// The OAuth flow of the official TypeScript client against one outlast: every check is one line, `ok` or `FAIL` with what was
// wrong. The lines on standard error are the transcript: each request to either server, with secrets cut short.
import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

const { values: given } = parseArgs({
  options: Object.fromEntries(['url', 'issuer', 'era', 'lifetime'].map(name => [name, { type: 'string' }])),
});
const MODE = { legacy: 'legacy', auto: 'auto', '2026-07-28': { pin: '2026-07-28' } }[given.era];
const lifetime = Number(given.lifetime) * 1000;
const pause = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds));
const control = action => fetch(`${given.issuer}/control/${action}`, { method: 'POST' });

function row(check, problem) {
  const words = problem ? `FAIL ${problem}`.replace(/\s+/g, ' ').slice(0, 400) : 'ok';
  process.stdout.write(['typescript', 'http', given.era, check, words].join('\t') + '\n');
}

async function check(name, doing) {
  console.error(`\n# ${name}`);
  try {
    await doing();
    row(name);
  } catch (error) {
    row(name, `${error?.constructor?.name}: ${error?.message}`);
  }
}

const short = text => text.replace(/((?:code|token|verifier|challenge|state|secret)[^=&"]*=)[^&"]{8,}/g, '$1...');

async function fetched(url, init) {
  const response = await fetch(url, init);
  const challenge = response.headers.get('www-authenticate');
  console.error(`${init?.method ?? 'GET'} ${short(String(url))} -> ${response.status}${challenge ? `\n  ${challenge}` : ''}`);
  return response;
}

/** A browser that follows redirects with its cookies, up to the client's own address. */
async function browse(start, account) {
  const jar = new Map();
  let url = new URL(start);
  for (let step = 0; step < 20; step += 1) {
    const cookie = [...jar].map(pair => pair.join('=')).join('; ');
    const response = await fetched(url, { redirect: 'manual', headers: { cookie, 'x-account': account } });
    for (const set of response.headers.getSetCookie()) {
      const [name, ...value] = set.split(';')[0].split('=');
      jar.set(name, value.join('='));
    }
    const next = response.headers.get('location');
    if (!next) throw new Error(`the sign-in ended at ${url.pathname}: ${response.status} ${await response.text()}`);
    url = new URL(next, url);
    if (url.pathname === '/callback') return url.searchParams;
  }
  throw new Error('the sign-in goes round in circles');
}

/** What a client keeps between its runs. */
class Person {
  constructor(account, scope) {
    Object.assign(this, { account, scope, saved: {} });
  }
  redirectUrl = 'http://127.0.0.1:1/callback';
  get clientMetadata() {
    const metadata = {
      client_name: 'outlast-interop', redirect_uris: [this.redirectUrl], token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'],
    };
    return this.scope ? { ...metadata, scope: this.scope } : metadata;
  }
  clientInformation() { return this.saved.client; }
  saveClientInformation(client) { this.saved.client = client; }
  tokens() { return this.saved.tokens; }
  saveTokens(tokens) { this.saved.tokens = tokens; }
  redirectToAuthorization(url) { this.authorization = url; }
  saveCodeVerifier(verifier) { this.saved.verifier = verifier; }
  codeVerifier() { return this.saved.verifier; }
}

async function connected(person) {
  const client = new Client({ name: 'outlast-interop', version: '1' }, { versionNegotiation: { mode: MODE } });
  client.onerror = () => {};
  const transport = new StreamableHTTPClientTransport(new URL(given.url), { authProvider: person, fetch: fetched });
  await client.connect(transport);
  return { client, transport };
}

async function signIn(person) {
  const transport = new StreamableHTTPClientTransport(new URL(given.url), { authProvider: person, fetch: fetched });
  const client = new Client({ name: 'outlast-interop', version: '1' }, { versionNegotiation: { mode: MODE } });
  await assert.rejects(client.connect(transport), UnauthorizedError);
  await transport.finishAuth(await browse(person.authorization, person.account));
  return connected(person);
}

const structured = async (client, name, args) => (await client.callTool({ name, arguments: args })).structuredContent;
const start = (client, words) =>
  structured(client, 'perplexity_research_start', { messages: [{ role: 'user', content: words }] });
const claims = person => JSON.parse(Buffer.from(person.saved.tokens.access_token.split('.')[1], 'base64url'));
const raw = token =>
  fetched(given.url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
  });

const ann = new Person('ann');
let session;
let jobId;

await check('sign-in', async () => {
  session = await signIn(ann);
  assert.equal(claims(ann).aud, given.url);
  assert.equal(ann.saved.tokens.scope, 'outlast:read outlast:run');
  const { tools } = await session.client.listTools();
  assert.ok(tools.some(tool => tool.name === 'perplexity_research_start'));
});

await check('expiry in a poll', async () => {
  jobId = (await start(session.client, `Why? ${given.era} [[sim:ok;words=60;delay_ms=${lifetime + 4000}]]`)).jobId;
  const begun = Date.now();
  const polled = await structured(session.client, 'perplexity_research_poll', { jobId });
  assert.ok(Date.now() - begun > lifetime, 'the token expired while the poll waited');
  assert.ok(['COMPLETED', 'IN_PROGRESS'].includes(polled.status), polled.status);
});

await check('refresh', async () => {
  await pause(61_000 - (Date.now() - claims(ann).exp * 1000));
  const before = ann.saved.tokens.access_token;
  const polled = await structured(session.client, 'perplexity_research_poll', { jobId });
  assert.notEqual(polled.status, 'NOT_FOUND', 'the same owner');
  assert.notEqual(ann.saved.tokens.access_token, before);
});

await check('key rotation', async () => {
  await control('rotate');
  await pause(600);
  const again = new Person('ann');
  const { client } = await signIn(again);
  const header = JSON.parse(Buffer.from(again.saved.tokens.access_token.split('.')[0], 'base64url'));
  assert.equal(header.typ, 'at+jwt');
  assert.notEqual((await structured(client, 'perplexity_research_poll', { jobId })).status, 'NOT_FOUND');
  assert.notEqual((await raw(ann.saved.tokens.access_token)).status, 401, 'the old key still counts');
  await client.close();
});

await check('issuer down', async () => {
  await control('down');
  try {
    assert.notEqual((await structured(session.client, 'perplexity_research_poll', { jobId })).status, 'NOT_FOUND');
  } finally {
    await control('up');
  }
});

await check('another person', async () => {
  const ben = new Person('ben');
  const { client } = await signIn(ben);
  assert.equal((await structured(client, 'perplexity_research_poll', { jobId })).status, 'NOT_FOUND');
  await client.close();
});

await check('ID token refused', async () => {
  const openid = new Person('ann', 'openid');
  const server = await (await fetched(`${given.issuer}/.well-known/openid-configuration`)).json();
  const client = await (await fetched(server.registration_endpoint, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(openid.clientMetadata),
  })).json();
  const verifier = 'v'.repeat(64);
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  const authorize = new URL(server.authorization_endpoint);
  authorize.search = new URLSearchParams({
    client_id: client.client_id, response_type: 'code', redirect_uri: openid.redirectUrl, scope: 'openid', nonce: 'n',
    code_challenge: Buffer.from(digest).toString('base64url'), code_challenge_method: 'S256',
  });
  const code = (await browse(authorize, 'ann')).get('code');
  const tokens = await (await fetched(server.token_endpoint, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'authorization_code', code, client_id: client.client_id, redirect_uri: openid.redirectUrl, code_verifier: verifier }),
  })).json();
  assert.equal((await raw(tokens.id_token)).status, 401, 'the ID token');
  const opaque = await raw(tokens.access_token);
  assert.match((await opaque.json()).error.message, /opaque/, 'a token for no resource');
});

await session.client.close();
