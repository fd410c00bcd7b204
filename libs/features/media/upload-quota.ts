import { z } from 'zod';

import type { EntityId } from '#libs/kernel/ids.ts';
import type { UploadLimits } from '#libs/platform/config/index.ts';
import { FunctionLibrary, type RedisClient } from '#libs/platform/redis/index.ts';

import { quotaKey } from './uploads.keys.ts';

/** An upload that counts against the quota of its key and of its organization. */
export interface CountedUpload {
  readonly organizationId: EntityId;
  readonly id: EntityId;
  readonly keyId: string;
  readonly bytes: number;
  readonly expiresAtMs: number;
}

export interface ExceededQuota {
  readonly of: 'key' | 'organization';
  readonly what: 'count' | 'bytes';
  readonly limit: number;
}

const number = z.int();

/**
 * Bounds the resumable uploads that are not complete, by their number and their declared bytes.
 *
 * Guarantees: of uploads that begin at the same time, in all processes, no more than the limits count. Omissions: an upload
 * whose process dies between its last part and `release` counts until it expires.
 */
export class UploadQuota {
  readonly #redis: RedisClient;
  readonly #functions: FunctionLibrary;
  readonly #limits: readonly (ExceededQuota & { readonly limit: number })[];

  constructor(redis: RedisClient, { perKey, perOrganization }: UploadLimits) {
    this.#redis = redis;
    this.#functions = new FunctionLibrary(redis, new URL('./lua/upload-quota.lua', import.meta.url));
    this.#limits = [
      { of: 'key', what: 'count', limit: perKey.count },
      { of: 'key', what: 'bytes', limit: perKey.bytes },
      { of: 'organization', what: 'count', limit: perOrganization.count },
      { of: 'organization', what: 'bytes', limit: perOrganization.bytes },
    ];
  }

  /** @returns null if the upload counts; else the limit that it would exceed. @throws `Fault` `store_unavailable` */
  async take({ organizationId, id, keyId, bytes, expiresAtMs }: CountedUpload): Promise<ExceededQuota | null> {
    const args = [id, expiresAtMs, bytes, keyId, ...this.#limits.map(({ limit }) => limit)];
    const [reply] = await this.#functions.callAll([
      { name: 'parley_upload_quota_take_v1', keys: [quotaKey(organizationId)], args },
    ]);
    return this.#limits[number.parse(reply) - 1] ?? null;
  }

  /** The upload is complete or cancelled. */
  async release({ organizationId, id }: Pick<CountedUpload, 'organizationId' | 'id'>): Promise<void> {
    const key = quotaKey(organizationId);
    await this.#redis.send(key, (node) => node.hdel(key, id));
  }
}
