/** The API in this process, on the stores of a session, for the operator of the machine. */
import { keyScope } from '#libs/features/keys/index.ts';
import { ParleyClient, type RestClient } from '#libs/client/src/index.ts';
import { VERSION } from '#libs/platform/config/index.ts';
import type { RunningRole } from '#libs/platform/lifecycle/index.ts';
import { buildHttpServer, type HttpServer, type Principal } from '#libs/platform/http/index.ts';
import { FIRST_ORGANIZATION } from '#services/first-organization.ts';
import { startReactors } from '#services/worker/role.ts';

import { organizationOf, type Session } from './session.ts';

export interface Api {
  readonly client: ParleyClient;
  readonly rest: RestClient;
  readonly url: string;
  /** The organization of commands without `--organization`; undefined for the organization of the key. */
  readonly defaultOrganization: string | undefined;
}

/** Parts that the API of this process must have. Default: none. */
export interface OwnApiNeeds {
  /** The first organization: for commands that act within one. */
  readonly needsOrganization?: boolean;
  /** The reactors of all features, unless another process runs them. */
  readonly needsWorker?: boolean;
}

/** The operator may do everything, in every organization. */
const OPERATOR: Principal = {
  organizationId: FIRST_ORGANIZATION,
  principalType: 'system',
  principalId: 'cli',
  keyId: 'cli',
  scopes: new Set(keyScope.options),
  isMember: false,
  expiresAtMs: null,
};

/** Calls `work` with the API, and ends the API. @throws CliError without the organization that `work` needs */
export async function serveOwn<T>(
  session: Session,
  work: (api: Api) => Promise<T>,
  { needsOrganization = false, needsWorker = false }: OwnApiNeeds = {},
): Promise<T> {
  if (needsOrganization) await organizationOf(session, {});
  const { platform, features } = session;
  const server = await buildHttpServer({
    routes: features.routes,
    authenticator: { authenticate: () => OPERATOR },
    tokenSecret: 'cursors last for one command',
    metrics: platform.metrics,
    rateLimits: { perKey: false, perAddress: false },
    info: { title: 'Parley', version: VERSION },
  });
  const url = 'http://127.0.0.1';
  let worker: RunningRole | undefined;
  try {
    if (needsWorker && session.isAlone) worker = await startWorker(session);
    const client = new ParleyClient({ url, apiKey: 'operator', fetch: fetchFrom(server) });
    return await work({ client, rest: client.rest, url, defaultOrganization: FIRST_ORGANIZATION });
  } finally {
    // Created for the routes of event streams.
    await features.realtime.node().stop();
    await server.close();
    await worker?.stop();
  }
}

function startWorker({ platform, features }: Session): Promise<RunningRole> {
  return startReactors({ platform, features, logChecked: Promise.resolve() }, features.reactors);
}

/** `fetch` without a network: the requests of the client go straight into the server. */
function fetchFrom({ app }: HttpServer): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    const { pathname, search } = new URL(request.url);
    const { statusCode, headers, rawPayload } = await app.inject({
      method: request.method as 'GET',
      url: `${pathname}${search}`,
      headers: Object.fromEntries(request.headers),
      ...(request.body !== null && { payload: await request.text() }),
    });
    const texts = Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]);
    // A response with the status 204 refuses even an empty body.
    return new Response(rawPayload.length === 0 ? null : new Uint8Array(rawPayload), {
      status: statusCode,
      headers: texts,
    });
  };
}
