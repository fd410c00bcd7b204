/** Where the Parley is that a command talks to, and with which key. */
import { findRunning } from '#infra/data-folder/index.ts';
import { ParleyClient } from '#libs/client/src/index.ts';
import { systemClock } from '#libs/kernel/clock.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { parseConfig } from '#libs/platform/config/index.ts';

import { operatorContext, withSession } from './command-context.ts';
import type { CliParts } from './command-context.ts';
import { CliError } from './errors.ts';
import { organizationOf } from './organization-option.ts';
import type { OrganizationOptions } from './organization-option.ts';
import type { Session } from './session.ts';

export interface AccessOptions extends OrganizationOptions {
  readonly url?: string;
}

export interface Access {
  readonly client: ParleyClient;
  readonly url: string;
  /** Takes back what was made for this command only. */
  end(): Promise<void>;
}

/** A key that was left behind by a command that was killed does not work for longer. */
const KEY_LASTS_MS = 24 * 3_600_000;

/**
 * With the key in `PARLEY_KEY`, Parley is called as by anybody. Without one, the operator of this machine gets a
 * key that can read, for as long as the command runs.
 *
 * @throws CliError when no Parley runs here and none is named
 */
export async function openAccess(parts: CliParts, options: AccessOptions): Promise<Access> {
  const { dataDir } = parseConfig(parts.environment);
  const url = options.url ?? given(parts, 'PARLEY_URL') ?? (await findRunning(dataDir))?.baseUrl;
  if (url === undefined) {
    throw new CliError(`no Parley runs on the data folder ${dataDir}; run npm start first, or name one with --url`);
  }
  if (!URL.canParse(url) || !/^https?:/.test(url)) throw new CliError(`${url} is not the address of a Parley`);
  const apiKey = given(parts, 'PARLEY_KEY');
  if (apiKey !== undefined) return { url, client: new ParleyClient({ url, apiKey }), end: async () => undefined };
  if (!(await storesAreThere(parts))) {
    throw new CliError('a Parley elsewhere is called with an API key: put it into PARLEY_KEY');
  }
  // Not one session for as long as the command runs: Parley may start again, and its stores with it.
  const key = await withSession(parts, (session) => makeKey(session, options));
  return { url, client: new ParleyClient({ url, apiKey: key.secret }), end: () => revoke(parts, key) };
}

function given({ environment }: CliParts, name: string): string | undefined {
  const value = environment[name]?.trim();
  return value === '' ? undefined : value;
}

/** Whether a session uses what runs, and would not have to start it. */
async function storesAreThere({ environment }: CliParts): Promise<boolean> {
  const { dataDir, eventstoreUrl, redisUrl } = parseConfig(environment);
  return (eventstoreUrl !== undefined && redisUrl !== undefined) || (await findRunning(dataDir)) !== undefined;
}

interface OwnKey {
  readonly organizationId: EntityId;
  readonly id: EntityId;
  readonly secret: string;
}

async function makeKey(session: Session, options: AccessOptions): Promise<OwnKey> {
  const organizationId = await organizationOf(session, options);
  const expiresAt = new Date(Date.parse(systemClock.now()) + KEY_LASTS_MS).toISOString();
  const issued = await session.features.keys.issue(
    operatorContext(organizationId),
    { name: 'parley tail', scopes: ['read'], principal: { type: 'service', id: 'parley-tail' }, expiresAt },
    'operator',
  );
  if (!issued.ok) throw new CliError(`no key could be made: ${issued.rejection.reason}`);
  return { organizationId, id: issued.entity.id, secret: issued.secret };
}

/** Where Parley is gone the key stays, and expires. */
async function revoke(parts: CliParts, { organizationId, id }: OwnKey): Promise<void> {
  if (!(await storesAreThere(parts))) return;
  await withSession(parts, ({ features }) => features.keys.revoke(operatorContext(organizationId), id, 'operator'));
}
