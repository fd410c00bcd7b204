import { z } from 'zod';

import { idReference, liveCommand, requireMayActAs, UNAUTHENTICATED } from '#libs/platform/http/index.ts';
import { EphemeralValues } from '#libs/platform/live/index.ts';
import type { LiveCommandType } from '#libs/platform/http/index.ts';
import type { LiveValue } from '#libs/platform/live/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

/** How long somebody counts as typing after having said so. */
export const TYPING_TTL_MS = 10_000;
/** Those who type in one channel at a time, as far as anybody is told. */
const MAX_TYPISTS = 64;

const typingData = z
  .object({
    agent_id: idReference({ description: 'The agent that writes; without it, the caller does' }).nullish(),
    typing: z.boolean().default(true).describe('false: no longer'),
  })
  .nullish();

/**
 * Who is typing in a channel: known for {@link TYPING_TTL_MS}, told to whoever listens. `key` of the frames is
 * `typing:<id>`, their data `{type, id, typing}`.
 */
export class Typing {
  readonly #values: EphemeralValues;

  constructor({ redis }: Pick<Platform, 'redis'>) {
    this.#values = new EphemeralValues(redis, {
      name: 'typing',
      keyPrefix: 'typing',
      ttlMs: TYPING_TTL_MS,
      max: MAX_TYPISTS,
    });
  }

  readonly command: LiveCommandType = liveCommand({
    type: 'typing',
    summary: `Say that the caller, or an agent, is typing: others know it for ${TYPING_TTL_MS / 1000} seconds`,
    data: typingData,
    isDurable: false,
    run: async ({ principal, channelId, data }) => {
      const { organizationId, principalType, principalId } = principal;
      if (data?.agent_id) requireMayActAs(principal, UNAUTHENTICATED);
      const typist = data?.agent_id ? { type: 'agent', id: data.agent_id } : { type: principalType, id: principalId };
      const typing = data?.typing ?? true;
      const value = { name: typist.id, json: JSON.stringify({ ...typist, typing }) };
      if (typing) await this.#values.put(organizationId, channelId, value);
      else await this.#values.remove(organizationId, channelId, value);
      return null;
    },
  });

  /** The frames of those who are typing in a channel now. */
  current(organizationId: EntityId, channelId: EntityId): Promise<LiveValue[]> {
    return this.#values.current(organizationId, channelId);
  }
}
