import { z } from 'zod';

import { UNAUTHENTICATED } from '#libs/kernel/acting.ts';
import { idReference, liveCommand, type LiveCommandType, requireMayActAs } from '#libs/platform/http/index.ts';
import { EphemeralValues } from '#libs/platform/live/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

/** How long a principal counts as typing after its command. */
export const TYPING_TTL_MS = 10_000;
/** Principals of one channel that are shown as typing at a time. */
const MAX_TYPING = 64;

const typingData = z
  .object({
    agent_id: idReference({ description: 'The agent that is typing. Default: the caller' }).nullish(),
    typing: z.boolean().default(true).describe('`false`: stopped typing'),
  })
  .nullish();

/** The users and agents that are typing in a channel: ephemeral frames with the `key` `typing:<id>`. */
export class Typing {
  readonly values: EphemeralValues;

  constructor({ redis }: Pick<Platform, 'redis'>) {
    const kind = { name: 'typing', keyPrefix: 'typing', ttlMs: TYPING_TTL_MS, max: MAX_TYPING };
    this.values = new EphemeralValues(redis, kind);
  }

  readonly command: LiveCommandType = liveCommand({
    type: 'typing',
    summary: `Show that the caller, or an agent, is typing, for ${TYPING_TTL_MS / 1000} seconds`,
    data: typingData,
    isDurable: false,
    run: async ({ principal, channelId, data }) => {
      const { organizationId, principalType, principalId } = principal;
      if (data?.agent_id) requireMayActAs(principal, UNAUTHENTICATED);
      const writer = data?.agent_id ? { type: 'agent', id: data.agent_id } : { type: principalType, id: principalId };
      const typing = data?.typing ?? true;
      const value = { name: writer.id, json: JSON.stringify({ ...writer, typing }) };
      if (typing) await this.values.put(organizationId, channelId, value);
      else await this.values.remove(organizationId, channelId, value);
      return null;
    },
  });
}
