/** Where the Parley is that a command talks to, and with which key. */
import { findRunning } from '#infra/data-folder/index.ts';
import { ParleyClient } from '#libs/client/src/index.ts';
import { systemClock } from '#libs/kernel/clock.ts';
import { parseConfig } from '#libs/platform/config/index.ts';

import { operatorContext } from './command-context.ts';
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
  const { dataDir, eventstoreUrl, redisUrl } = parseConfig(parts.environment);
  const running = await findRunning(dataDir);
  const url = options.url ?? given(parts, 'PARLEY_URL') ?? running?.baseUrl;
  if (url === undefined) {
    throw new CliError(`no Parley runs on the data folder ${dataDir}; run npm start first, or name one with --url`);
  }
  if (!URL.canParse(url) || !/^https?:/.test(url)) throw new CliError(`${url} is not the address of a Parley`);
  const apiKey = given(parts, 'PARLEY_KEY');
  if (apiKey !== undefined) return { url, client: new ParleyClient({ url, apiKey }), end: async () => undefined };
  if (running === undefined && (eventstoreUrl === undefined || redisUrl === undefined)) {
    throw new CliError(`a Parley elsewhere is called with an API key: put it into PARLEY_KEY`);
  }
  const session = await parts.openSession();
  try {
    const key = await makeKey(session, options);
    return {
      url,
      client: new ParleyClient({ url, apiKey: key.secret }),
      async end() {
        try {
          await session.features.keys.commands.revoke(operatorContext(key.organizationId), key.id);
        } finally {
          await session.close();
        }
      },
    };
  } catch (error) {
    await session.close();
    throw error;
  }
}

function given({ environment }: CliParts, name: string): string | undefined {
  const value = environment[name]?.trim();
  return value === '' ? undefined : value;
}

async function makeKey(session: Session, options: AccessOptions) {
  const organizationId = await organizationOf(session, options);
  const expiresAt = new Date(Date.parse(systemClock.now()) + KEY_LASTS_MS).toISOString();
  const issued = await session.features.keys.commands.issue(
    operatorContext(organizationId),
    { name: 'parley tail', scopes: ['read'], principal: { type: 'service', id: 'parley-tail' }, expiresAt },
    'operator',
  );
  if (!issued.ok) throw new CliError(`no key could be made: ${issued.rejection.reason}`);
  return { organizationId, id: issued.key.id, secret: issued.secret };
}
