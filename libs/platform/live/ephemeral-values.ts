import { z } from 'zod';

import type { EntityId } from '#libs/kernel/ids.ts';
import { FunctionLibrary, type RedisClient } from '#libs/platform/redis/index.ts';

import { FRAME_FLAG, type LiveValue, type LiveValues, encodeUserValue, encodeValue } from './frames.ts';
import { channelTopic, ephemeralKeys } from './live.keys.ts';

interface EphemeralValue {
  readonly name: string;
  readonly n: number;
  readonly json: string;
  readonly ttlMs: number;
}

interface EphemeralKind {
  /** Part of the Redis keys, such as `typing`. */
  readonly name: string;
  /** The `key` of a frame is this, a colon, and the value's name, percent-encoded. */
  readonly keyPrefix: string;
  readonly ttlMs: number;
  /** Limit of the values of one channel. */
  readonly max: number;
}

interface GivenValue {
  readonly name: string;
  readonly n?: number;
  readonly json: string;
}

/** Stands for a finished value. */
const FINISHED = 'null';

const found = z.array(z.string());

/**
 * Ephemeral values of channels. Redis stores the last value of each name with a TTL, and publishes it in the same call.
 * They are neither in the log nor in the read models: losing them breaks no guarantee.
 *
 * All methods throw `Fault` `store_unavailable`.
 */
export class EphemeralValues implements LiveValues {
  readonly #functions: FunctionLibrary;
  readonly #kind: EphemeralKind;

  constructor(redis: RedisClient, kind: EphemeralKind) {
    this.#functions = new FunctionLibrary(redis, new URL('./lua/ephemeral-values.lua', import.meta.url));
    this.#kind = kind;
  }

  /**
   * @param value.n default: higher than all before it
   * @param value.json JSON text on one line
   * @returns the JSON stored after the call: the earlier value, if its `n` is the same or higher; `json` for a
   *   finished one
   */
  async put(organizationId: EntityId, channelId: EntityId, value: GivenValue): Promise<string> {
    const stored = await this.#put(organizationId, channelId, value, this.#kind.ttlMs);
    return stored === FINISHED ? value.json : stored;
  }

  /** Publishes the end of a value, and takes none of that name any longer until it would have expired. */
  async finish(organizationId: EntityId, channelId: EntityId, name: string): Promise<void> {
    await this.#put(organizationId, channelId, { name, n: Number.MAX_SAFE_INTEGER, json: FINISHED }, 0);
  }

  /** @param shownTtlMs that subscribers receive */
  async #put(
    organizationId: EntityId,
    channelId: EntityId,
    { name, n, json }: GivenValue,
    shownTtlMs: number,
  ): Promise<string> {
    const { ttlMs, max } = this.#kind;
    const args = [name, n ?? '', json, ttlMs, max, ...this.#messageAroundN(name, json, shownTtlMs)];
    const call = { name: 'parley_ephemeral_put_v2', keys: this.#writtenKeys(organizationId, channelId), args };
    const [stored] = await this.#functions.callAll([call]);
    return z.string().parse(stored);
  }

  /** Deletes those of the values that are stored, and publishes the `json` of each with a lifetime of 0. */
  async end(
    organizationId: EntityId,
    channelId: EntityId,
    values: readonly { readonly name: string; readonly json: string }[],
  ): Promise<void> {
    const args = values.flatMap(({ name, json }) => [name, ...this.#messageAroundN(name, json, 0)]);
    const call = { name: 'parley_ephemeral_end_v2', keys: this.#writtenKeys(organizationId, channelId), args };
    await this.#functions.callAll([call]);
  }

  #writtenKeys(organizationId: EntityId, channelId: EntityId): string[] {
    const { values, expiry, topic } = ephemeralKeys(this.#kind.name, organizationId, channelId);
    return [values, expiry, topic];
  }

  /** The message that publishes a value, before and after its `n`. */
  #messageAroundN(name: string, json: string, ttlMs: number): [beforeN: string, afterN: string] {
    const key = this.#key(name);
    const [beforeN, afterN] = frameAroundN(key, json, ttlMs);
    return [encodeValue({ flags: FRAME_FLAG.ephemeral, key, json: beforeN }), afterN];
  }

  /** The values of a channel, ordered by expiry. */
  async ofChannel(organizationId: EntityId, channelId: EntityId): Promise<EphemeralValue[]> {
    const { values, expiry } = ephemeralKeys(this.#kind.name, organizationId, channelId);
    const [reply] = await this.#functions.callAll([
      { name: 'parley_ephemeral_all_v2', keys: [values, expiry], args: [] },
    ]);
    const words = found.parse(reply);
    const all = Array.from({ length: words.length / 4 }, (_, index) => {
      const [name = '', n, ttlMs, json = ''] = words.slice(4 * index, 4 * index + 4);
      return { name, n: Number(n), ttlMs: Number(ttlMs), json };
    });
    return all.filter(({ json }) => json !== FINISHED);
  }

  async current(organizationId: EntityId, channelId: EntityId): Promise<LiveValue[]> {
    const values = await this.ofChannel(organizationId, channelId);
    return values.map(({ name, n, ttlMs, json }) => {
      const key = this.#key(name);
      const [beforeN, afterN] = frameAroundN(key, json, ttlMs);
      return { flags: FRAME_FLAG.ephemeral, key, json: `${beforeN}${n}${afterN}` };
    });
  }

  #key(name: string): string {
    return `${this.#kind.keyPrefix}:${encodeURIComponent(name)}`;
  }
}

/** The JSON of a frame before and after its `n`, which Redis may choose. */
function frameAroundN(key: string, dataJson: string, ttlMs: number): [beforeN: string, afterN: string] {
  return [`{"frame":"ephemeral","key":${JSON.stringify(key)},"n":`, `,"data":${dataJson},"ttl_ms":${ttlMs}}`];
}

/**
 * Sends a value of a channel to the subscribers of one user. Nothing stores it, and a subscriber may miss it.
 *
 * @param value.json JSON text on one line
 * @throws `Fault` `store_unavailable`
 */
export async function sendToUser(
  redis: RedisClient,
  to: { readonly organizationId: EntityId; readonly channelId: EntityId; readonly userId: EntityId },
  value: { readonly key: string; readonly n: number; readonly json: string; readonly ttlMs: number },
): Promise<void> {
  const topic = channelTopic(to.organizationId, to.channelId);
  const [beforeN, afterN] = frameAroundN(value.key, value.json, value.ttlMs);
  const frame = { flags: FRAME_FLAG.ephemeral, json: `${beforeN}${value.n}${afterN}` };
  await redis.send(topic, (node) => node.spublish(topic, encodeUserValue(to.userId, frame)));
}
