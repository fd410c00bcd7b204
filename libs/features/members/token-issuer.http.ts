import { z } from 'zod';

import { declareReads, EntityReplies } from '#libs/platform/entity/index.ts';
import type { Fetcher } from '#libs/platform/fetch/index.ts';
import {
  commandContext,
  conflict,
  type HttpApp,
  idParam,
  invalid,
  requireEndpoint,
  routesTagged,
  text,
} from '#libs/platform/http/index.ts';

import { publicKeyOf, UnusableKey } from './public-keys.ts';
import { issuerSchema, type TokenIssuers } from './token-issuer.read.ts';
import type { PublicKey, TokenIssuerEvent, TokenIssuerState } from './token-issuer.ts';

const MAX_ISSUERS = 20;
const MAX_KEYS = 16;

const name = text({ max: 256, description: 'Purpose of the issuer' });
/** A JWK is an object, PEM a text; which of its members count is decided where it is read. */
const keys = z
  .array(z.union([z.record(z.string(), z.unknown()).meta({ id: 'JsonWebKey' }), text({ max: 4_096 })]))
  .min(1)
  .max(MAX_KEYS)
  .describe('Public keys, as JWK or PEM: Ed25519 (EdDSA), P-256 (ES256) or RSA of 2,048 to 4,096 bits (RS256)');
const jwksUrl = text({ max: 2_083, description: 'Address of a JWK Set with the public keys, instead of `keys`' });
const createsUsers = z
  .boolean()
  .describe('Whether a subject that is seen for the first time becomes a user of the organization');
const createBody = z
  .object({
    name: name.default(''),
    issuer: text({ min: 1, max: 512, description: '`iss` of its tokens' }),
    audience: text({ min: 1, max: 512, description: '`aud` of its tokens, or one of them' }),
    keys: keys.nullish(),
    jwks_url: jwksUrl.nullish(),
    creates_users: createsUsers.default(false),
  })
  .meta({
    id: 'TokenIssuerCreate',
    examples: [
      { issuer: 'https://login.example.org/', audience: 'parley', jwks_url: 'https://login.example.org/keys' },
    ],
  });
/** Absent fields stay as they are. */
const updateBody = z
  .object({
    name: name.optional(),
    keys: keys.optional(),
    jwks_url: jwksUrl.optional(),
    creates_users: createsUsers.optional(),
  })
  .meta({ id: 'TokenIssuerUpdate', examples: [{ creates_users: true }] });

const params = z.object({ id: idParam('Id of the token issuer') });
const response = { 200: issuerSchema };
const admins = routesTagged('token-issuers').requiring('admin');

/** Where public keys may be fetched from. */
type KeySources = Pick<Fetcher, 'check' | 'isAllowedHost'>;

type Replies = EntityReplies<TokenIssuerState, TokenIssuerEvent, {}>;

export function tokenIssuerRoutes(app: HttpApp, issuers: TokenIssuers, fetcher: KeySources): void {
  const replies = new EntityReplies(issuers, {});
  declareReads(app, replies, {
    path: '/api/v1/token-issuers',
    tag: 'token-issuers',
    scope: 'admin',
    params,
    schema: issuerSchema,
    list: { operationId: 'listTokenIssuers', summary: 'List token issuers, newest first' },
    one: { operationId: 'getTokenIssuer', summary: 'Read a token issuer' },
  });
  createRoute(app, replies, issuers, fetcher);
  changeRoutes(app, replies, issuers, fetcher);
}

function createRoute(app: HttpApp, replies: Replies, issuers: TokenIssuers, fetcher: KeySources): void {
  app.post(
    '/api/v1/token-issuers',
    admins({
      operationId: 'createTokenIssuer',
      summary: 'Register a party that signs tokens for users of the organization',
      description:
        'A token is a JWT with `iss`, `aud`, `sub` (the id of the user with this issuer), `iat` and `exp`, at most a day later. Its user is a member: it sees the channels in which it takes part.',
      body: createBody,
      response,
    }),
    async (request, reply) => {
      const { name: given, issuer, audience, creates_users: creates } = request.body;
      const { keys: registered = null, jwks_url: url = null } = request.body;
      if ((registered === null) === (url === null)) throw invalid(['body'], ONE_SOURCE, null);
      const context = commandContext(request);
      if (url !== null) requireJwksUrl(fetcher, url);
      const { total } = await issuers.page(context.organizationId, {}, { size: 1, offset: 0, after: null });
      if (total >= MAX_ISSUERS) {
        throw conflict(`An organization has at most ${MAX_ISSUERS} token issuers`, 'too_many_token_issuers');
      }
      const data = {
        id: context.commandId,
        name: given,
        issuer,
        audience,
        keys: await publicKeys(registered ?? []),
        jwksUrl: url,
        createsUsers: creates,
      };
      const created = await issuers.create(context, data.id, { type: 'TokenIssuerCreated.v1', data });
      return replies.sendResult(request, reply, created);
    },
  );
}

function changeRoutes(app: HttpApp, replies: Replies, issuers: TokenIssuers, fetcher: KeySources): void {
  app.patch(
    '/api/v1/token-issuers/:id',
    admins({
      operationId: 'updateTokenIssuer',
      summary: 'Update a token issuer; tokens that a removed key signed are refused from then on',
      params,
      body: updateBody,
      response,
    }),
    async (request, reply) => {
      const { name: given, keys: registered, jwks_url: url, creates_users: creates } = request.body;
      if (registered !== undefined && url !== undefined) throw invalid(['body'], ONE_SOURCE, null);
      if (url !== undefined) requireJwksUrl(fetcher, url);
      const source =
        registered !== undefined
          ? { keys: await publicKeys(registered), jwksUrl: null }
          : url !== undefined
            ? { keys: [], jwksUrl: url }
            : {};
      const changes = { name: given, createsUsers: creates, ...source };
      return replies.sendResult(
        request,
        reply,
        await issuers.change(commandContext(request), request.params.id, changes),
      );
    },
  );

  app.delete(
    '/api/v1/token-issuers/:id',
    admins({
      operationId: 'deleteTokenIssuer',
      summary: 'Delete a token issuer; all of its tokens are refused from then on',
      params,
      response: { 204: z.null().describe('The token issuer is deleted') },
    }),
    async (request, reply) => {
      replies.accepted(request, reply, await issuers.change(commandContext(request), request.params.id, 'delete'));
      return reply.code(204).send();
    },
  );
}

const ONE_SOURCE = 'the public keys come from `keys` or from `jwks_url`, not from both';

/** @throws ValidationFailure 422 */
function requireJwksUrl(fetcher: KeySources, url: string): void {
  requireEndpoint(fetcher, url, ['body', 'jwks_url']);
  if (!url.toLowerCase().startsWith('https:') && !fetcher.isAllowedHost(url)) {
    throw invalid(['body', 'jwks_url'], 'keys are fetched over https', url);
  }
}

/** @throws ValidationFailure 422. Its errors do not quote the key: it may be a private one. */
async function publicKeys(given: readonly unknown[]): Promise<PublicKey[]> {
  return Promise.all(
    given.map((key, index) =>
      publicKeyOf(key).catch((error: unknown) => {
        throw error instanceof UnusableKey ? invalid(['body', 'keys', index], error.message, null) : error;
      }),
    ),
  );
}
