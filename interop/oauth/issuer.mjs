// An authorization server for scripts/oauth: oidc-provider with resource indicators, JWT access tokens and registration. Every
// person signs in and agrees at once; the header `x-account` of their browser names them. POST /control/rotate replaces the
// signing key and keeps the old one; /control/down and /control/up stop and resume all answers but those of /control.
import { createServer } from 'node:http';
import { exportJWK, generateKeyPair } from 'jose';
import Provider from 'oidc-provider';

const port = Number(process.argv[2]);
const lifetime = Number(process.argv[3]);
const issuer = `http://127.0.0.1:${port}`;
const scopes = ['outlast:read', 'outlast:run', 'outlast:admin'];
const keys = [];
let provider;
let down = false;

async function rotate() {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const key = { ...(await exportJWK(privateKey)), kid: `key-${keys.length + 1}`, alg: 'RS256', use: 'sig' };
  keys.unshift(key);
  provider = new Provider(issuer, {
    jwks: { keys },
    scopes: ['openid', 'offline_access', ...scopes],
    cookies: { keys: ['only-for-tests'] },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    issueRefreshToken: async (_, client) => client.grantTypeAllowed('refresh_token'),
    ttl: { RefreshToken: 3600, Grant: 3600, Session: 3600, Interaction: 600, IdToken: 3600 },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, resource) => ({
          scope: scopes.join(' '),
          audience: resource,
          accessTokenTTL: lifetime,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  });
  provider.on('server_error', (_, error) => console.error(error));
}

/** Signs the person in, and grants the client what it asked for. */
async function interact(request, response) {
  const details = await provider.interactionDetails(request, response);
  const accountId = details.session?.accountId ?? request.headers['x-account'] ?? 'ann';
  if (details.prompt.name === 'login') {
    return provider.interactionFinished(request, response, { login: { accountId } }, { mergeWithLastSubmission: false });
  }
  const clientId = details.params.client_id;
  const grant = (details.grantId && (await provider.Grant.find(details.grantId))) || new provider.Grant({ accountId, clientId });
  const { missingOIDCScope, missingResourceScopes } = details.prompt.details;
  if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(' '));
  for (const [resource, missing] of Object.entries(missingResourceScopes ?? {})) grant.addResourceScope(resource, missing.join(' '));
  const grantId = await grant.save();
  return provider.interactionFinished(request, response, { consent: { grantId } }, { mergeWithLastSubmission: true });
}

await rotate();
createServer(async (request, response) => {
  const { pathname } = new URL(request.url, issuer);
  try {
    if (pathname.startsWith('/control/')) {
      if (pathname.endsWith('rotate')) await rotate();
      if (pathname.endsWith('down')) down = true;
      if (pathname.endsWith('up')) down = false;
      return response.end();
    }
    if (down) return response.writeHead(503).end();
    if (pathname.startsWith('/interaction/')) return await interact(request, response);
    return provider.callback()(request, response);
  } catch (error) {
    console.error(error);
    return response.writeHead(500).end(String(error));
  }
}).listen(port, '127.0.0.1', () => console.log(`issuer at ${issuer}`));
