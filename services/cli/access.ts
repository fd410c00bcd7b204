/** URL and API key of a running Parley, for commands that need the server and not only its stores. */
import { findRunning } from '#infra/data-folder/index.ts';
import { ParleyClient } from '#libs/client/src/index.ts';
import { systemClock } from '#libs/kernel/clock.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { parseConfig, secretOf } from '#libs/platform/config/index.ts';

import {
  type CliParts,
  operatorContext,
  organizationOf,
  type OrganizationOptions,
  withSession,
} from './command-context.ts';
import { CliError } from './errors.ts';
import type { Session } from './session.ts';

export interface AccessOptions extends OrganizationOptions {
  readonly url?: string;
}

/** The key that is created for a command. */
export interface KeyOfCommand {
  /** Of the command, such as `tail`. */
  readonly name: string;
  readonly scopes: readonly ('read' | 'write')[];
}

export interface Access {
  readonly client: ParleyClient;
  readonly url: string;
  /** Revokes the key that was created for this command. */
  end(): Promise<void>;
}

/** Expiry of the created key, in case the command is killed. */
const KEY_LASTS_MS = 24 * 3_600_000;

/**
 * Uses the key in `PARLEY_KEY`. Without it, creates `key`, which requires the stores of the installation.
 *
 * @throws CliError if no Parley runs here and no URL is given
 */
export async function openAccess(parts: CliParts, options: AccessOptions, wanted: KeyOfCommand): Promise<Access> {
  const { dataDir } = parseConfig(parts.environment);
  const url = options.url ?? given(parts, 'PARLEY_URL') ?? (await findRunning(dataDir))?.baseUrl;
  if (url === undefined) {
    throw new CliError(`no Parley runs on the data folder ${dataDir}; run npm start first, or name a URL with --url`);
  }
  if (!URL.canParse(url) || !/^https?:/.test(url)) throw new CliError(`${url} is not an http or https URL`);
  const apiKey = secretOf(parts.environment, 'PARLEY_KEY');
  if (apiKey !== undefined) return { url, client: new ParleyClient({ url, apiKey }), end: async () => undefined };
  if (!(await storesAreThere(parts))) {
    throw new CliError('a remote Parley requires an API key: set PARLEY_KEY');
  }
  // Closes the session right away: Parley may restart while the command runs, and its stores with it.
  const key = await withSession(parts, (session) => makeKey(session, options, wanted));
  return { url, client: new ParleyClient({ url, apiKey: key.secret }), end: () => revoke(parts, key) };
}

function given({ environment }: CliParts, name: string): string | undefined {
  const value = environment[name]?.trim();
  return value === '' ? undefined : value;
}

/** Whether a session would use running stores, instead of starting them. */
async function storesAreThere({ environment }: CliParts): Promise<boolean> {
  const { dataDir, eventstoreUrl, redisUrl } = parseConfig(environment);
  return (eventstoreUrl !== undefined && redisUrl !== undefined) || (await findRunning(dataDir)) !== undefined;
}

interface OwnKey {
  readonly organizationId: EntityId;
  readonly id: EntityId;
  readonly secret: string;
}

async function makeKey(session: Session, options: AccessOptions, { name, scopes }: KeyOfCommand): Promise<OwnKey> {
  const organizationId = await organizationOf(session, options);
  const expiresAt = new Date(Date.parse(systemClock.now()) + KEY_LASTS_MS).toISOString();
  const issued = await session.features.keys.issue(
    operatorContext(organizationId),
    { name: `parley ${name}`, scopes: [...scopes], principal: { type: 'service', id: `parley-${name}` }, expiresAt },
    'operator',
  );
  if (!issued.ok) throw new CliError(`no key could be created: ${issued.rejection.reason}`);
  return { organizationId, id: issued.entity.id, secret: issued.secret };
}

/** If Parley has stopped, the key remains until it expires. */
async function revoke(parts: CliParts, { organizationId, id }: OwnKey): Promise<void> {
  if (!(await storesAreThere(parts))) return;
  await withSession(parts, ({ features }) => features.keys.revoke(operatorContext(organizationId), id, 'operator'));
}
