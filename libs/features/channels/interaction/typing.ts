import { z } from 'zod';

import { UNAUTHENTICATED } from '#libs/kernel/acting.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { idReference, liveCommand, type LiveCommandType, requireMayActAs } from '#libs/platform/http/index.ts';
import { EphemeralValues, type LiveValue, type LiveValues } from '#libs/platform/live/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

/** How long a principal counts as typing after its command. */
const TYPING_TTL_MS = 10_000;
/** Principals of one channel that are shown as typing at a time. */
const MAX_TYPING = 64;

const typingData = z
  .object({
    agent_id: idReference({ description: 'The agent that is typing. Default: the caller' }).nullish(),
    typing: z.boolean().default(true).describe('`false`: stopped typing'),
  })
  .nullish();

interface Writer {
  /** `user`, `agent` or `service`. */
  readonly type: string;
  readonly id: string;
}

/** The users and agents that are typing in a channel: ephemeral frames with the `key` `typing:<id>`. */
export class Typing implements LiveValues {
  readonly #values: EphemeralValues;

  constructor({ redis }: Pick<Platform, 'redis'>) {
    const kind = { name: 'typing', keyPrefix: 'typing', ttlMs: TYPING_TTL_MS, max: MAX_TYPING };
    this.#values = new EphemeralValues(redis, kind);
  }

  current(organizationId: EntityId, channelId: EntityId): Promise<readonly LiveValue[]> {
    return this.#values.current(organizationId, channelId);
  }

  /** Does nothing for a writer that is not typing. @throws `Fault` `store_unavailable` */
  end(organizationId: EntityId, channelId: EntityId, writers: readonly Writer[]): Promise<void> {
    const values = writers.map((writer) => valueOf(writer, false));
    return this.#values.end(organizationId, channelId, values);
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
      if (typing) await this.#values.put(organizationId, channelId, valueOf(writer, true));
      else await this.end(organizationId, channelId, [writer]);
      return null;
    },
  });
}

function valueOf({ type, id }: Writer, typing: boolean): { name: string; json: string } {
  return { name: id, json: JSON.stringify({ type, id, typing }) };
}
