import { VERSION, type Config } from '#libs/platform/config/index.ts';
import { buildHttpServer, type HttpServer, type HttpServerOptions } from '#libs/platform/http/index.ts';

import type { RoleContext } from './role.ts';

const MINUTE_MS = 60_000;

/** Introduces `/docs`. */
const DESCRIPTION = `Conversations of people and AI agents, and what the agents know. Each entity is a stream of events; reads are folds of it, and every change can be followed live.

- **channels** hold participants and threads, **interactions** their messages, tool calls and notifications in one sequence, with **reactions**.
- **agents** answer in channels, by a model or by a program of your own. **Prompts** ask one directly; **runs** and **invocations** show what it did and why.
- **knowledge** graphs hold facts with their sources. They learn from **documents** and **crawls** of websites; **reports** answer questions from them.
- **media** items are files, fetched or uploaded, with previews.
- **organizations**, **users** and **keys** are for administrators.

Authenticate with \`Authorization: Bearer <key>\`. \`/asyncapi.json\` describes the frames of websockets and event streams, \`/health/ready\` the state of the server.`;

const TAGS = {
  organizations: 'Tenants: everything else belongs to one of them',
  users: 'People of an organization',
  keys: 'API keys, with scopes and an optional expiry',
  'token-issuers': 'Identity providers whose tokens members of the organization may use',
  channels: 'Conversations of people and agents, and their participants',
  interactions: 'Messages, tool calls and notifications of a channel, with reactions',
  knowledge: 'Graphs of facts with their sources',
  documents: 'Texts that a graph learns from',
  crawls: 'Websites that a graph learns from',
  media: 'Files, with previews and resumable uploads',
  reports: 'Answers to questions, from the facts of a graph',
  agents: 'Participants that answer, by a model or by a program of their own',
  runs: 'How an agent came to its answer',
};

/** Builds an HTTP server that authenticates by API keys. It does not listen yet; `stop` closes it. */
export async function buildApiServer(
  { platform, features }: RoleContext,
  config: Config,
  own: Pick<HttpServerOptions, 'routes' | 'idempotency' | 'positions'>,
): Promise<{ readonly server: HttpServer; stop(): Promise<void> }> {
  const perMinute = (max: number) => (max === 0 ? (false as const) : { max, windowMs: MINUTE_MS });
  const { authenticator, access, stop } = features.startAuthenticator();
  const server = await buildHttpServer({
    ...own,
    authenticator,
    access,
    tokenSecret: platform.tokenSecret,
    probes: platform.probes,
    metrics: platform.metrics,
    spans: platform.spans,
    logger: platform.log,
    accessLog: config.accessLog,
    stopping: platform.stopping,
    upgrades: platform.upgrades,
    info: {
      title: 'Parley',
      version: VERSION,
      description: DESCRIPTION,
      tags: TAGS,
    },
    corsOrigins: config.corsOrigins,
    trustedProxies: config.trustedProxies,
    publicUrl: config.publicUrl,
    rateLimits: {
      perKey: perMinute(config.rateLimitPerKey),
      perAddress: perMinute(config.rateLimitPerAddress),
    },
    requestTimeoutMs: config.requestTimeoutMs,
  });
  return {
    server,
    async stop() {
      await server.close(config.stopTimeoutMs);
      stop();
    },
  };
}
