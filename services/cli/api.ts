/**
 * The one way in which commands call the API. It is served by the Parley that `--url` or `PARLEY_URL` names; else by the
 * Parley that runs on the data folder, for commands that use a server; else by the same routes in this process, on the
 * stores of the installation: the operator of the machine needs no key for them, and Parley need not run.
 */
import { messageOf } from '#libs/kernel/faults.ts';
import { findRunning } from '#infra/data-folder/index.ts';
import { ParleyClient, refusalOf } from '#libs/client/src/index.ts';
import { systemClock } from '#libs/kernel/clock.ts';
import { parseConfig, secretOf } from '#libs/platform/config/index.ts';

import {
  type CliParts,
  inOrganization,
  type OrganizationOptions,
  organizationQuery,
  withSession,
} from './command-context.ts';
import { CliError, noOrganization } from './errors.ts';
import type { Api, OwnApiNeeds } from './own-api.ts';

export type { Api };

/** Expiry of a key that is created for a command, in case the command is killed. */
const KEY_LASTS_MS = 24 * 3_600_000;

/** How a command uses a server. Without the key of `PARLEY_KEY`, it gets a key that ends with the command. */
interface ServerUse extends OrganizationOptions {
  /** The name of the command. */
  readonly command: string;
  readonly scopes: ('read' | 'write')[];
  /** Default: `PARLEY_URL`, else the Parley that runs on the data folder. */
  readonly url?: string;
  /**
   * Where none runs: `refuse`, or `work`: the reactors of all features run in this process. A Parley that runs decides by
   * its own settings what it fetches, so the command never runs them beside it.
   */
  readonly otherwise: 'refuse' | 'work';
}

interface ApiOptions {
  /** Whether the first organization must exist: commands that act within one. */
  readonly needsOrganization?: boolean;
  readonly server?: ServerUse;
}

/** @throws CliError if no server is there that the command needs, or its key is missing */
export async function withApi(
  parts: CliParts,
  work: (api: Api) => Promise<void>,
  { needsOrganization = true, server }: ApiOptions = {},
): Promise<void> {
  const { dataDir } = parseConfig(parts.environment);
  const named = server?.url ?? given(parts, 'PARLEY_URL');
  const url = named ?? (server && (await findRunning(dataDir))?.baseUrl);
  if (url !== undefined) return withServer(parts, { url, isNamed: named !== undefined }, server, work);
  if (server?.otherwise === 'refuse')
    throw new CliError(`no Parley runs on the data folder ${dataDir}; run npm start first, or name a URL with --url`);
  await withOwnApi(parts, work, { needsOrganization, needsWorker: server !== undefined });
}

async function withServer(
  parts: CliParts,
  { url, isNamed }: { readonly url: string; readonly isNamed: boolean },
  server: ServerUse | undefined,
  work: (api: Api) => Promise<void>,
): Promise<void> {
  if (!URL.canParse(url) || !/^https?:/.test(url)) throw new CliError(`${url} is not an http or https URL`);
  const use = (apiKey: string): Promise<void> => {
    const client = new ParleyClient({ url, apiKey });
    return work({ client, rest: client.rest, url, defaultOrganization: undefined });
  };
  const apiKey = secretOf(parts.environment, 'PARLEY_KEY');
  if (apiKey !== undefined) return use(apiKey);
  // A key of this installation is shown to its own server, and to the server that the user of `tail` names.
  if (server === undefined || (isNamed && server.otherwise === 'work'))
    throw new CliError('PARLEY_URL names another Parley: set PARLEY_KEY to an API key of it, or unset PARLEY_URL');
  if (!(await storesAreThere(parts))) throw new CliError('a remote Parley requires an API key: set PARLEY_KEY');
  const { id, key } = await createKey(parts, server);
  if (key === null) throw new CliError('no key could be created');
  await use(key).finally(() =>
    revokeKey(parts, server, id).catch((error: unknown) => {
      const reason = messageOf(error);
      parts.tell(`the key ${id} of this command is not revoked, and expires within a day: ${reason}`);
    }),
  );
}

/** Whether a session would use running stores, instead of starting them. */
async function storesAreThere({ environment }: CliParts): Promise<boolean> {
  const { dataDir, eventstoreUrl, redisUrl } = parseConfig(environment);
  return (eventstoreUrl !== undefined && redisUrl !== undefined) || (await findRunning(dataDir)) !== undefined;
}

/** Closes its session right away: Parley may restart while the command runs, and its stores with it. */
function createKey(parts: CliParts, options: ServerUse): Promise<{ readonly id: string; readonly key: string | null }> {
  const body = {
    name: `parley ${options.command}`,
    scopes: options.scopes,
    principal: { type: 'service', id: `parley-${options.command}` } as const,
    access: 'organization' as const,
    expires_at: new Date(Date.parse(systemClock.now()) + KEY_LASTS_MS).toISOString(),
    ...organizationQuery(options),
  };
  return withOwnApi(parts, ({ rest }) => dataOf(rest.POST('/api/v1/keys', { body }), noOrganization(options)));
}

/** If Parley has stopped, the key remains until it expires. */
async function revokeKey(parts: CliParts, options: ServerUse, id: string): Promise<void> {
  if (!(await storesAreThere(parts))) return;
  const request = inOrganization(id, options);
  await withOwnApi(parts, ({ rest }) => dataOf(rest.POST('/api/v1/keys/{id}/revoke', request), 'there is no such key'));
}

async function withOwnApi<T>(parts: CliParts, work: (api: Api) => Promise<T>, needs?: OwnApiNeeds): Promise<T> {
  return withSession(parts, async (session) => (await import('./own-api.ts')).serveOwn(session, work, needs));
}

function given({ environment }: CliParts, name: string): string | undefined {
  const value = environment[name]?.trim();
  return value === '' ? undefined : value;
}

export type Reply<T> = Promise<{ readonly data?: T; readonly error?: unknown; readonly response: Response }>;

/**
 * The data of a reply.
 *
 * @param missing the message for status 404
 * @throws CliError for every refusal
 */
export async function dataOf<T>(call: Reply<T>, missing: string): Promise<T> {
  const { data, error, response } = await call.catch((cause: unknown) => {
    throw new CliError(`Parley cannot be reached: ${messageOf(cause)}`);
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
  principal: '--user',
};

/** The operator gave options, which are members of the body, or of the query. */
function inTermsOfOptions(message: string): string {
  return message.replaceAll(
    /(^|; )(?:body|query)\.([a-z_]+)(?:\.[\w.]+)?: (?:Value error, )?/g,
    (_all, before: string, member: string) => `${before}${OPTIONS[member] ?? `--${member.replaceAll('_', '-')}`}: `,
  );
}
