import type { EntityId } from '#libs/kernel/ids.ts';
import { EphemeralValues, type LiveValue } from '#libs/platform/live/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import { interactionOf } from './reads/resource.ts';

export const UPDATE_TTL_MS = 5 * 60 * 1000;
/** Limit of the stored updates of one channel. */
export const MAX_TOOL_CALLS = 64;

/** The last update of a running tool call as the API returns it, with its turn and parent. */
export interface ToolCallUpdate {
  readonly document: Buffer;
  readonly turnId: string | null;
  readonly parentSpanId: string | null;
  /** Unix milliseconds. */
  readonly createdMs: number;
}

/** The last update of each running tool call, in Redis. All methods throw `Fault` `store_unavailable`. */
export class ToolCallUpdates {
  readonly #values: EphemeralValues;

  constructor({ redis }: Pick<Platform, 'redis'>) {
    this.#values = new EphemeralValues(redis, {
      name: 'tool-call-updates',
      keyPrefix: 'tool_call',
      ttlMs: UPDATE_TTL_MS,
      max: MAX_TOOL_CALLS,
    });
  }

  /** Stores and publishes an update. @returns the stored one: an earlier one, if its sequence is the same or higher */
  put(
    organizationId: EntityId,
    channelId: EntityId,
    { toolCallId, sequence, document }: { toolCallId: string; sequence: number; document: string },
  ): Promise<string> {
    return this.#values.put(organizationId, channelId, { name: toolCallId, n: sequence, json: document });
  }

  /** The channel has the result of the call: its last update is not shown again, and a late one is not stored. */
  end(organizationId: EntityId, channelId: EntityId, toolCallId: string): Promise<void> {
    return this.#values.finish(organizationId, channelId, toolCallId);
  }

  /** The updates of a channel, least recently stored first. */
  async ofChannel(organizationId: EntityId, channelId: EntityId): Promise<ToolCallUpdate[]> {
    return (await this.#values.ofChannel(organizationId, channelId)).map(({ json }) => {
      const { turnId, parentSpanId, createdAt } = interactionOf(json);
      return { document: Buffer.from(json), turnId, parentSpanId, createdMs: Date.parse(createdAt) };
    });
  }

  current(organizationId: EntityId, channelId: EntityId): Promise<LiveValue[]> {
    return this.#values.current(organizationId, channelId);
  }
}
