/** The first organization, its owner and a key: created once per log, however often the first start is interrupted. */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';

import { systemClock } from '#libs/kernel/clock.ts';
import { derivedId, newId, type EntityId } from '#libs/kernel/ids.ts';
import { canBeKey, keyScope, newKey, OWN_KEY_FORM, type KeyDescription, type Keys } from '#libs/features/keys/index.ts';
import { ORGANIZATION, type Organizations } from '#libs/features/organizations/index.ts';
import type { Users } from '#libs/features/users/index.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import { replaceFile } from '#libs/platform/files/index.ts';
import {
  type BackgroundJob,
  settledWithin,
  startBackgroundJob,
  StartRefusal,
  throwUncaught,
  unlessAborted,
} from '#libs/platform/lifecycle/index.ts';
import { streamName } from '#libs/platform/streams/index.ts';

import type { RoleContext } from './role.ts';

interface BootstrapParts {
  readonly store: EventStore;
  readonly organizations: Organizations;
  readonly users: Users;
  readonly keys: Keys;
  /**
   * A durable folder, which holds the first key until it was shown. Null where there is none: then no random key is
   * created, because it could be lost before it is shown.
   */
  readonly dataDir: string | null;
  /** `PARLEY_BOOTSTRAP_KEY`: a key to install instead of a random one. */
  readonly bootstrapKey?: string | undefined;
}

export interface Bootstrapped {
  readonly organizationId: EntityId;
  readonly userId: EntityId;
  /** The random key, until `shown` was called; null if there is none to show. */
  readonly apiKey: string | null;
  /** The file that holds it, for the owner only; null without a folder. */
  readonly file: string | null;
  /** Deletes the stored secret; to be called once `apiKey` was shown. */
  shown(): Promise<void>;
}

/** Their ids are the same in every log, so that each log has them once. */
const NAMESPACE: EntityId = '0d4f6f0a-6a4e-5d0c-8a45-3f0f2a3c7f11';
export const FIRST_ORGANIZATION: EntityId = derivedId(NAMESPACE, 'organization');
const OWNER: EntityId = derivedId(NAMESPACE, 'owner');

/**
 * Safe to call at every start, by any number of processes at once, and to be killed at any moment. A `bootstrapKey` is
 * installed at each start; once revoked, it stays revoked. Works while the read models are incomplete.
 *
 * @throws StartRefusal for a `bootstrapKey` that cannot be a key; `Fault` while the event store is away
 */
export async function bootstrap(parts: BootstrapParts): Promise<Bootstrapped> {
  const { bootstrapKey, dataDir, organizations, users } = parts;
  refuseUnusableKey(bootstrapKey);

  // 1. Writes a random key to disk before it is in the log: from here on, no crash can lose it.
  const file = dataDir === null ? null : join(dataDir, 'first-key');
  let apiKey = file === null ? null : await savedSecret(file);
  if (file !== null && apiKey === null && bootstrapKey === undefined && !(await isBootstrapped(parts.store))) {
    apiKey = newKey().secret;
    await replaceFile(file, `${apiKey}\n`, { isDurable: true });
  }

  // 2. Creates the owner before its keys, and the organization last: its existence shows that all steps were done.
  const owner = { id: OWNER, displayName: 'Owner', email: null, imageUrl: null };
  await users.create(step(), OWNER, { type: 'UserCreated.v1', data: owner });
  for (const secret of [bootstrapKey, apiKey]) if (typeof secret === 'string') await install(parts, secret);
  const first = { id: FIRST_ORGANIZATION, name: 'Default organization', application: null, ownerUserId: OWNER };
  await organizations.create(step(), FIRST_ORGANIZATION, { type: 'OrganizationCreated.v1', data: first });

  return {
    organizationId: FIRST_ORGANIZATION,
    userId: OWNER,
    apiKey,
    file,
    async shown() {
      if (file !== null) await rm(file, { force: true });
    },
  };
}

/** With both stores available, a gateway serves nothing before the log is checked; otherwise it starts all the same. */
const CHECK_WAIT_MS = 1_000;

/** The first organization, its owner and its key, on the stores of a process: see `bootstrap`. */
export function bootstrapOn(
  { platform, features }: Pick<RoleContext, 'platform' | 'features'>,
  options: Pick<BootstrapParts, 'bootstrapKey' | 'dataDir'>,
): Promise<Bootstrapped> {
  const { organizations, users, keys } = features;
  return bootstrap({ store: platform.store, organizations, users, keys, ...options });
}

/**
 * Creates the first organization once the stores answer and the log is checked; until then the process is not ready.
 * Several processes may do it at once: the log takes the events of one, and the others find them there.
 */
export async function startBootstrap(context: RoleContext, bootstrapKey: string | undefined): Promise<BackgroundJob> {
  const { platform, logChecked } = context;
  let ok = false;
  platform.probes.push({ name: 'bootstrap', check: async () => ({ ok }) });
  const job = startBackgroundJob({
    name: 'bootstrap',
    log: platform.log,
    backoff: { maxMs: 3_000 },
    async run(signal) {
      await unlessAborted(logChecked, signal);
      await unlessAborted(bootstrapOn(context, { bootstrapKey, dataDir: null }), signal);
      ok = true;
    },
    // A bootstrap key of another organization never becomes usable.
    isFatal: (error) => error instanceof StartRefusal,
    onFatal: throwUncaught,
  });
  await settledWithin(CHECK_WAIT_MS, job.ended);
  return job;
}

/** @throws StartRefusal for a `PARLEY_BOOTSTRAP_KEY` that cannot be a key; needs no store */
export function refuseUnusableKey(bootstrapKey: string | undefined): void {
  if (bootstrapKey === undefined || canBeKey(bootstrapKey)) return;
  throw new StartRefusal(
    `PARLEY_BOOTSTRAP_KEY must have ${OWN_KEY_FORM}; a key that begins with parley_live_ must have been generated by Parley`,
  );
}

async function install({ keys }: BootstrapParts, secret: string): Promise<void> {
  const description: KeyDescription = {
    name: 'First key',
    principal: { type: 'user', id: OWNER },
    scopes: [...keyScope.options],
    access: 'organization',
    expiresAt: null,
  };
  const key = newKey(secret);
  const result = await keys.issue(step(), description, 'operator', key);
  // The owner was deactivated, so the key does not work: Parley starts all the same.
  if (!result.ok && result.rejection.reason === 'user_not_active') return;
  if (!result.ok || result.entity.organizationId !== FIRST_ORGANIZATION) {
    throw new StartRefusal('PARLEY_BOOTSTRAP_KEY is a key of another organization; choose another one');
  }
}

async function isBootstrapped(store: EventStore): Promise<boolean> {
  for await (const { foreign } of store.readStream(streamName(ORGANIZATION, FIRST_ORGANIZATION), {
    needs: 'nothing',
  })) {
    if (foreign === undefined) return true;
  }
  return false;
}

/**
 * Each process runs commands of its own. With shared ids, the event store would take the events that slower processes
 * append for repetitions, and these processes would project events with other times than those in the log.
 */
function step(): CommandContext {
  return {
    commandId: newId(),
    organizationId: FIRST_ORGANIZATION,
    actor: { type: 'system', id: 'bootstrap' },
    at: systemClock.now(),
  };
}

async function savedSecret(file: string): Promise<string | null> {
  const content = await readFile(file, 'utf8').catch(() => '');
  const secret = content.trim();
  return canBeKey(secret) ? secret : null;
}
