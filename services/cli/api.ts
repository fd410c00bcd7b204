/**
 * The API as the commands of administration use it. With `PARLEY_URL` and `PARLEY_KEY` it is the API of that Parley.
 * Otherwise the same routes run in this process, on the stores of the installation: the operator of the machine needs
 * no key, and Parley need not run.
 */
import { findRunning } from '#infra/data-folder/index.ts';
import { keyScope } from '#libs/features/keys/index.ts';
import { ParleyClient, refusalOf, type RestClient } from '#libs/client/src/index.ts';
import { buildHttpServer, type HttpServer, type Principal } from '#libs/platform/http/index.ts';
import { FIRST_ORGANIZATION } from '#services/first-organization.ts';
import { parseConfig, secretOf, VERSION } from '#libs/platform/config/index.ts';
import type { RunningRole } from '#libs/platform/lifecycle/index.ts';
import { startReactors } from '#services/worker/role.ts';

import { openAccess } from './access.ts';
import {
  type CliParts,
  organizationOf,
  type OutputOptions,
  printOne,
  printRows,
  withSession,
} from './command-context.ts';
import { CliError } from './errors.ts';
import type { Row } from './output.ts';
import type { Session } from './session.ts';

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

export interface Api {
  readonly rest: RestClient;
  /** The organization of commands without `--organization`; undefined for that of `PARLEY_KEY`. */
  readonly defaultOrganization: string | undefined;
}

interface ApiOptions {
  /** Whether the first organization must exist: commands that act within one. */
  readonly needsOrganization?: boolean;
  /**
   * The name of a command that waits for effects. The Parley that runs on the data folder decides by its own settings
   * what it fetches, so the command uses it; if none runs, the reactors of all features run in this process.
   */
  readonly waitsFor?: string;
}

export async function withApi(
  parts: CliParts,
  work: (api: Api) => Promise<void>,
  { needsOrganization = true, waitsFor }: ApiOptions = {},
): Promise<void> {
  const { PARLEY_URL: url } = parts.environment;
  const apiKey = secretOf(parts.environment, 'PARLEY_KEY');
  if (url && !apiKey) {
    throw new CliError('PARLEY_URL names another Parley: set PARLEY_KEY to an API key of it, or unset PARLEY_URL');
  }
  if (url && apiKey) {
    return work({ rest: new ParleyClient({ url, apiKey }).rest, defaultOrganization: undefined });
  }
  if (waitsFor !== undefined && (await findRunning(parseConfig(parts.environment).dataDir)) !== undefined) {
    const { client, end } = await openAccess(parts, {}, { name: waitsFor, scopes: ['read', 'write'] });
    return work({ rest: client.rest, defaultOrganization: undefined }).finally(end);
  }
  await withSession(parts, async (session) => {
    if (needsOrganization) await organizationOf(session, {});
    const server = await buildHttpServer({
      routes: session.features.routes,
      authenticator: { authenticate: () => OPERATOR },
      tokenSecret: 'cursors last for one command',
      metrics: session.platform.metrics,
      rateLimits: { perKey: false, perAddress: false },
      info: { title: 'Parley', version: VERSION },
    });
    const worker = waitsFor !== undefined && session.isAlone ? await startWorker(session) : null;
    try {
      const client = new ParleyClient({ url: 'http://127.0.0.1', apiKey: 'operator', fetch: fetchFrom(server) });
      await work({ rest: client.rest, defaultOrganization: FIRST_ORGANIZATION });
    } finally {
      await worker?.stop();
      // Created for the routes of event streams.
      await session.features.realtime.node().stop();
      await server.close();
    }
  });
}

function startWorker({ platform, features }: Session): Promise<RunningRole> {
  const context = { platform, features, logChecked: Promise.resolve() };
  return startReactors(context, features.reactors);
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

type Reply<T> = Promise<{ readonly data?: T; readonly error?: unknown; readonly response: Response }>;

/**
 * The data of a reply.
 *
 * @param missing the message for status 404
 * @throws CliError for every refusal
 */
export async function dataOf<T>(call: Reply<T>, missing: string): Promise<T> {
  const { data, error, response } = await call.catch((cause: unknown) => {
    throw new CliError(`Parley cannot be reached: ${cause instanceof Error ? cause.message : String(cause)}`);
  });
  if (data !== undefined) return data;
  const { message } = refusalOf(response, error);
  throw new CliError(response.status === 404 ? missing : inTermsOfOptions(message));
}

/** Options of commands whose names differ from those of the members that they set. */
const OPTIONS: Readonly<Record<string, string>> = {
  url: '<url>',
  scan_depth: '--depth',
  max_pages: '--pages',
  knowledge_graph: '--graph',
  expires_at: '--expires',
  grace_seconds: '--grace',
  display_name: '--name',
  owner_id: '--owner',
  organization_id: '--organization',
};

/** The operator gave options, which are members of the body, or of the query. */
function inTermsOfOptions(message: string): string {
  return message.replaceAll(
    /(^|; )(?:body|query)\.([a-z_]+)(?:\.[\w.]+)?: (?:Value error, )?/g,
    (_all, before: string, member: string) => `${before}${OPTIONS[member] ?? `--${member.replaceAll('_', '-')}`}: `,
  );
}

interface PrintOptions<T> {
  /** The message for status 404. */
  readonly missing: string;
  /** What to print. Default: the data as they are. */
  readonly rowOf?: (data: T) => Row;
  readonly needsOrganization?: boolean;
}

/** Calls the API, and prints the data of the reply. */
export async function printReply<T extends Row>(
  parts: CliParts,
  options: OutputOptions,
  { missing, rowOf = (data) => data, ...needs }: PrintOptions<T>,
  call: (rest: RestClient) => Reply<T>,
): Promise<void> {
  const work = async ({ rest }: Api) => printOne(parts, options, rowOf(await dataOf(call(rest), missing)));
  await withApi(parts, work, needs);
}

interface Page<T> {
  readonly items: readonly T[];
  readonly meta: { readonly next_cursor: string | null };
}

/** Calls the API for all pages of a list, and prints their items. */
export async function printList<T extends Row>(
  parts: CliParts,
  options: OutputOptions,
  { missing, rowOf = (data) => data, columns, ...needs }: PrintOptions<T> & { readonly columns: string[] },
  call: (rest: RestClient, page: { size: number; cursor?: string }) => Reply<Page<T>>,
): Promise<void> {
  const work = async ({ rest }: Api): Promise<void> => {
    const rows: Row[] = [];
    for (let cursor: string | null | undefined; cursor !== null;) {
      const page = await dataOf(call(rest, { size: 100, ...(cursor !== undefined && { cursor }) }), missing);
      rows.push(...page.items.map(rowOf));
      cursor = page.meta.next_cursor;
    }
    printRows(parts, options, rows, columns);
  };
  await withApi(parts, work, needs);
}
