import { z } from 'zod';

import type { EntityId } from '#libs/kernel/ids.ts';
import { FunctionLibrary } from '#libs/platform/redis/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import { toolCallUpdateKeys } from './interactions.keys.ts';

/** How long an update can be read after it was sent. */
export const UPDATE_TTL_MS = 5 * 60 * 1000;
/** Tool calls of one channel whose updates are kept at a time. */
export const MAX_TOOL_CALLS = 64;

/** What is kept of a running tool call, as REST answers it, and where it belongs. */
export interface ToolCallUpdate {
  readonly document: Buffer;
  readonly turnId: string | null;
  readonly parentSpanId: string | null;
  /** Unix milliseconds. */
  readonly createdMs: number;
}

const belonging = z.object({
  interaction_id: z.string().nullable(),
  parent_span_id: z.string().nullable(),
  created_at: z.string(),
});

/**
 * Updates of tool calls that run: the last of each, for {@link UPDATE_TTL_MS}. They are in Redis only and no
 * part of the read models: what forgets them loses nothing that was promised.
 *
 * All methods throw `Fault` `store_unavailable`.
 */
export class ToolCallUpdates {
  readonly #functions: FunctionLibrary;

  constructor({ redis }: Pick<Platform, 'redis'>) {
    this.#functions = new FunctionLibrary(redis, new URL('./lua/tool-call-updates.lua', import.meta.url));
  }

  /** @returns what is kept after that: another update, if that has the same or a higher sequence */
  async put(
    organizationId: EntityId,
    channelId: EntityId,
    update: { readonly toolCallId: string; readonly sequence: number; readonly document: string },
  ): Promise<string> {
    const { documents, expiry } = toolCallUpdateKeys(organizationId, channelId);
    const [kept] = await this.#functions.callAll([
      {
        name: 'parley_tool_call_update_put_v1',
        keys: [documents, expiry],
        args: [update.toolCallId, update.sequence, update.document, UPDATE_TTL_MS, MAX_TOOL_CALLS],
      },
    ]);
    return z.string().parse(kept);
  }

  /** Those of a channel, the one that has not changed for longest first. */
  async ofChannel(organizationId: EntityId, channelId: EntityId): Promise<ToolCallUpdate[]> {
    const { documents, expiry } = toolCallUpdateKeys(organizationId, channelId);
    const call = { name: 'parley_tool_call_update_all_v1', keys: [documents, expiry], args: [] };
    const [found] = await this.#functions.callAll([call]);
    return z
      .array(z.string())
      .parse(found)
      .map((document) => {
        const { interaction_id, parent_span_id, created_at } = belonging.parse(JSON.parse(document));
        return {
          document: Buffer.from(document),
          turnId: interaction_id,
          parentSpanId: parent_span_id,
          createdMs: Date.parse(created_at),
        };
      });
  }
}
