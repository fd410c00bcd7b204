import type { Timestamp } from '#libs/kernel/clock.ts';
import type { StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { derivedId } from '#libs/kernel/ids.ts';
import { faultAfterWrite } from '#libs/kernel/faults.ts';
import { CommandHandler, withPreconditions } from '#libs/platform/commands/index.ts';
import { foldStream } from '#libs/platform/readmodel/index.ts';
import type {
  CommandContext,
  CommandHandlerOptions,
  CommandResult,
  CommandRunner,
  CommandStores,
} from '#libs/platform/commands/index.ts';
import { accept } from '#libs/kernel/decider.ts';

import type { KeyChangeAnnouncer } from './key-changes.ts';
import { newKey } from './key-form.ts';
import type { NewKey } from './key-form.ts';
import { userEntity } from '#libs/features/users/index.ts';
import { decideIssue, decideRevoke, decideRotate, decideWithdraw, expiryOfSuccessor, isActive } from './key.decider.ts';
import type { Grantor, Key, KeyRejection, KeyState } from './key.decider.ts';
import type { KeyEvent, KeyIssued } from './key.events.ts';
import { keyProjection } from './keys.projection.ts';
import { isActiveUser } from './known-key.ts';

/** A key after a command, at the revision of its stream. */
export type KeyResult =
  | { readonly ok: true; readonly key: Key; readonly revision: StreamRevision }
  | { readonly ok: false; readonly rejection: KeyRejection };

/** A new key together with its secret, which nobody will be able to tell again. */
export type NewKeyResult = (KeyResult & { readonly ok: true; readonly secret: string }) | (KeyResult & { ok: false });

/** What a new key is to be. */
export interface KeyDescription extends Pick<KeyIssued, 'name' | 'principal' | 'scopes'> {
  readonly expiresAt: Timestamp | null;
}

export interface RotateOptions {
  /** How long the old key works on; without it, until it is revoked. */
  readonly graceSeconds?: number | undefined;
  readonly expiresAt?: Timestamp | null | undefined;
  readonly grantor: Grantor;
}

const USER_NOT_ACTIVE = { ok: false, rejection: { reason: 'user_not_active' } } as const;

/** The commands of API keys. All of them throw the faults of `CommandHandler.handle`. */
export class KeyCommands {
  readonly #handler: CommandRunner<KeyState, KeyEvent>;
  readonly #store: CommandStores['store'];
  readonly #changes: KeyChangeAnnouncer;

  constructor(stores: CommandStores, changes: KeyChangeAnnouncer, options?: CommandHandlerOptions) {
    this.#handler = withPreconditions(new CommandHandler(keyProjection, stores, options), (key) =>
      key === null || key === 'withdrawn' ? null : key.changedRevision,
    );
    this.#store = stores.store;
    this.#changes = changes;
  }

  /** @param secret where it is not to be a new random one; issuing the same secret again changes nothing */
  async issue(
    context: CommandContext,
    description: KeyDescription,
    grantor: Grantor,
    secret: NewKey = newKey(),
  ): Promise<NewKeyResult> {
    if (!(await this.#isActive(context.organizationId, description.principal))) return USER_NOT_ACTIVE;
    return this.#issue(context, { ...description, rotatedFrom: null }, grantor, secret);
  }

  /**
   * Gives a key a successor of the same name, principal and scopes, and the same expiry unless another is given.
   * The old one works on until it is revoked, or for `graceSeconds`. The log of the old key decides: of two rotations at once only one gets through.
   */
  async rotate(context: CommandContext, id: EntityId, options: RotateOptions): Promise<NewKeyResult> {
    const { at, organizationId } = context;
    const { graceSeconds = null, grantor } = options;
    const successor = newKey();

    const graceEndsAt = graceSeconds === null ? null : new Date(Date.parse(at) + graceSeconds * 1_000).toISOString();
    const { expiresAt } = options;
    const request = { target: { organizationId }, to: successor.id, graceEndsAt, expiresAt, at, grantor };

    // 1. Which keys of the chain do not work any more. A caller that may not rotate the key changes none of them.
    const known = await this.#ownKey(context, id);
    const inactive = new Set<EntityId>();
    if (known !== null) {
      const allowed = decideRotate(known, { ...request, inactive: neighboursOf(known) });
      if (!allowed.ok) return allowed;
      if (!(await this.#isActive(organizationId, known.principal))) return USER_NOT_ACTIVE;
      for (const one of await this.#inactiveNeighbours(context, known)) inactive.add(one);
    }

    // 2. The old key names its successor: from here on, no other one can be issued.
    const rotation = { ...request, inactive };
    const step = { ...stepOf(context, `rotate to ${successor.id}`), ifMatch: context.ifMatch };
    const old = asKey(await this.#handler.handle(id, step, (state) => decideRotate(state, rotation)));
    if (!old.ok) return old;
    await this.#changes.announce({ kind: 'changed', keyId: id });

    // 3. The successor is issued. If this never happens, the next rotation withdraws it.
    const { name, principal, scopes } = old.key;
    const description = { name, principal, scopes, expiresAt: expiryOfSuccessor(old.key, rotation), rotatedFrom: id };
    try {
      return await this.#issue(context, description, grantor, successor);
    } catch (error) {
      throw faultAfterWrite(error);
    }
  }

  /** @param by the calling key: one that lacks a scope of the key does not revoke it */
  async revoke(context: CommandContext, id: EntityId, by: Grantor): Promise<KeyResult> {
    const result = asKey(await this.#handler.handle(id, context, (state) => decideRevoke(state, context, by)));
    if (result.ok) await this.#changes.announce({ kind: 'revoked', keyId: id });
    return result;
  }

  async #issue(
    context: CommandContext,
    description: KeyDescription & Pick<KeyIssued, 'rotatedFrom'>,
    grantor: Grantor,
    { secret, id, digest, lastFour }: NewKey,
  ): Promise<NewKeyResult> {
    const key: KeyIssued = { id, digest, lastFour, ...description };
    const step = stepOf(context, `issue ${id}`);
    const result = asKey(await this.#handler.handle(id, step, (state) => decideIssue(state, key, grantor)));
    if (!result.ok) return result;
    await this.#changes.announce({ kind: 'changed', keyId: id });
    return { ...result, secret };
  }

  /** Of the key's predecessor and its successor, those that do not work, and from now on never will. */
  async #inactiveNeighbours(context: CommandContext, key: Key): Promise<Set<EntityId>> {
    const inactive = new Set<EntityId>();
    if (key.rotatedFrom !== null && !isActive(await this.#current(context, key.rotatedFrom), context.at)) {
      inactive.add(key.rotatedFrom);
    }
    if (key.rotatedTo !== null) {
      const step = stepOf(context, `withdraw ${key.rotatedTo}`);
      const successor = await this.#handler.handle(key.rotatedTo, step, decideWithdraw);
      if (successor.ok && !isActive(successor.state, context.at)) inactive.add(key.rotatedTo);
    }
    return inactive;
  }

  async #ownKey(context: CommandContext, id: EntityId): Promise<Key | null> {
    const key = await this.#current(context, id);
    return key === null || key === 'withdrawn' || key.organizationId !== context.organizationId ? null : key;
  }

  /** Whether a key of the principal can work, by the log: a read model may not know yet that a user was deactivated. */
  async #isActive(organizationId: EntityId, { type, id }: KeyIssued['principal']): Promise<boolean> {
    if (type !== 'user') return true;
    return isActiveUser(await foldStream(this.#store, userEntity.projection, id), organizationId);
  }

  /** The state at the true end of the stream: a command that does nothing is decided there. */
  async #current(context: CommandContext, id: EntityId): Promise<KeyState> {
    const result = await this.#handler.handle(id, { ...context, ifMatch: undefined }, () => accept());
    return result.ok ? result.state : null;
  }
}

/**
 * One request may write to several streams, with a command id for each. It depends on the new key's id:
 * a repeated request makes another secret, hence other events, which must not pass for the first ones. `If-Match`
 * names the revision of one stream, so no step has it unless it is added.
 */
function stepOf(context: CommandContext, step: string): CommandContext {
  return { ...context, commandId: derivedId(context.commandId, step), ifMatch: undefined };
}

function asKey(result: CommandResult<KeyState, KeyEvent, KeyRejection>): KeyResult {
  if (!result.ok) return result;
  const { state, revision } = result;
  // Every accepted command leaves a key behind; only a decider that is wrong could get here.
  if (state === null || state === 'withdrawn')
    throw new TypeError('a command was accepted for a key that does not exist');
  return { ok: true, key: state, revision };
}

function neighboursOf({ rotatedFrom, rotatedTo }: Key): Set<EntityId> {
  return new Set([rotatedFrom, rotatedTo].filter((id) => id !== null));
}
