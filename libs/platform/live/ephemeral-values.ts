import { z } from 'zod';

import type { EntityId } from '#libs/kernel/ids.ts';
import { FunctionLibrary } from '#libs/platform/redis/index.ts';
import type { RedisClient } from '#libs/platform/redis/index.ts';

import { FRAME_FLAG } from './event-frame.ts';
import { encodeValue } from './live-message.ts';
import { ephemeralKeys } from './live.keys.ts';
import { ephemeralJson, ephemeralValue } from './value-frames.ts';
import type { LiveValue } from './value-frames.ts';

/** A value of the moment, as it is kept. */
export interface EphemeralValue {
  readonly name: string;
  readonly n: number;
  /** JSON text. */
  readonly json: string;
  /** Milliseconds until it is forgotten. */
  readonly ttlMs: number;
}

/** What values of a kind have in common. */
export interface EphemeralKind {
  /** Part of the Redis keys, such as `typing`. */
  readonly name: string;
  /** The `key` of a frame is this, a colon, and the value's name, percent-encoded. */
  readonly keyPrefix: string;
  readonly ttlMs: number;
  /** Values that are kept of one channel. */
  readonly max: number;
}

const found = z.array(z.string());

/**
 * Values of the moment of channels: the last of each name is kept for a while in Redis, and what is kept
 * anew is published to whoever listens, in the same call. They are in no log and no part of the read models:
 * what forgets them loses nothing that was promised.
 *
 * All methods throw `Fault` `store_unavailable`.
 */
export class EphemeralValues {
  readonly #functions: FunctionLibrary;
  readonly #kind: EphemeralKind;

  constructor(redis: RedisClient, kind: EphemeralKind) {
    this.#functions = new FunctionLibrary(redis, new URL('./lua/ephemeral-values.lua', import.meta.url));
    this.#kind = kind;
  }

  /**
   * @param value.n without it, one that is higher than all before it
   * @param value.json JSON text on one line
   * @returns the JSON that is kept after that: another value's, if that has the same or a higher `n`
   */
  put(
    organizationId: EntityId,
    channelId: EntityId,
    value: { readonly name: string; readonly n?: number; readonly json: string },
  ): Promise<string> {
    return this.#put(organizationId, channelId, value, this.#kind.ttlMs);
  }

  /** Forgets a value; those who listen are told, with the `json` given here. */
  async remove(
    organizationId: EntityId,
    channelId: EntityId,
    value: { readonly name: string; readonly json: string },
  ): Promise<void> {
    await this.#put(organizationId, channelId, value, 0);
  }

  /** Those of a channel, the one that will be forgotten next first. */
  async ofChannel(organizationId: EntityId, channelId: EntityId): Promise<EphemeralValue[]> {
    const { values, expiry } = ephemeralKeys(this.#kind.name, organizationId, channelId);
    const [reply] = await this.#functions.callAll([
      { name: 'parley_ephemeral_all_v1', keys: [values, expiry], args: [] },
    ]);
    const words = found.parse(reply);
    return Array.from({ length: words.length / 4 }, (_, index) => {
      const [name = '', n, ttlMs, json = ''] = words.slice(4 * index, 4 * index + 4);
      return { name, n: Number(n), ttlMs: Number(ttlMs), json };
    });
  }

  /** The frames of what is kept of a channel. */
  async current(organizationId: EntityId, channelId: EntityId): Promise<LiveValue[]> {
    const values = await this.ofChannel(organizationId, channelId);
    return values.map(({ name, n, ttlMs, json }) => ephemeralValue({ key: this.#key(name), n, ttlMs, data: { json } }));
  }

  #key(name: string): string {
    return `${this.#kind.keyPrefix}:${encodeURIComponent(name)}`;
  }

  async #put(
    organizationId: EntityId,
    channelId: EntityId,
    { name, n, json }: { readonly name: string; readonly n?: number; readonly json: string },
    ttlMs: number,
  ): Promise<string> {
    const { values, expiry, topic } = ephemeralKeys(this.#kind.name, organizationId, channelId);
    const key = this.#key(name);
    const { beforeN, afterN } = ephemeralJson(key, { json }, ttlMs);
    const published = encodeValue({ flags: FRAME_FLAG.ephemeral, key, json: beforeN });
    const [kept] = await this.#functions.callAll([
      {
        name: 'parley_ephemeral_put_v1',
        keys: [values, expiry, topic],
        args: [name, n ?? '', json, ttlMs, this.#kind.max, published, afterN],
      },
    ]);
    return z.string().parse(kept);
  }
}
