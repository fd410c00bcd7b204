import { z } from 'zod';

import type { EntityId } from '#libs/kernel/ids.ts';
import { FunctionLibrary } from '#libs/platform/redis/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import type { ToolCallUpdate } from '../tool-call-updates.ts';
import { channelKeys } from '../../channel.keys.ts';
import { interactionOf, spanIdOf } from './resource.ts';

/** Limits of the descendants of one interaction in a reply: reading more would delay all other reads. */
const MAX_NESTED = 2_000;
const MAX_NESTED_BYTES = 16 * 1024 * 1024;

const sequences = z.array(z.int());

/** Finds the descendants of a span in one round trip, whatever the depth of the tree. */
export class InteractionTreeIndex {
  readonly #functions: FunctionLibrary;

  constructor({ redis }: Pick<Platform, 'redis'>) {
    this.#functions = new FunctionLibrary(redis, new URL('./lua/interaction-tree.lua', import.meta.url));
  }

  /**
   * The sequences of the descendants of a span, ascending. Beyond the limits, those nearest to the span.
   *
   * @param end excludes interactions from this sequence on
   * @throws `Fault` `store_unavailable`
   */
  async below(organizationId: EntityId, channelId: EntityId, spanId: string, end: number): Promise<number[]> {
    const { children, documents } = channelKeys(organizationId, channelId);
    const args = [spanId, Math.min(end, Number.MAX_SAFE_INTEGER), MAX_NESTED, MAX_NESTED_BYTES];
    const [found] = await this.#functions.callAll([
      { name: 'parley_interaction_descendants_v2', keys: [children, documents], args },
    ]);
    return sequences.parse(found).sort((a, b) => a - b);
  }
}

/**
 * The tool-call updates that a reply nests in an interaction: those whose parent is in the reply, and those of its turn.
 * An interaction without a parent starts its turn, and gets all updates of it; any other gets only those without a
 * parent.
 *
 * @param below the descendants in the reply
 */
export function updatesBelow(
  interaction: Buffer,
  below: readonly Buffer[],
  updates: readonly ToolCallUpdate[],
): Buffer[] {
  if (updates.length === 0) return [];
  const { turnId, parentSpanId } = interactionOf(interaction);
  const spans = new Set([interaction, ...below].map(spanIdOf));
  const belongs = (update: ToolCallUpdate): boolean => {
    if (update.parentSpanId !== null && spans.has(update.parentSpanId)) return true;
    const isOfTurn = turnId !== null && update.turnId === turnId;
    return isOfTurn && (parentSpanId === null || update.parentSpanId === null);
  };
  return updates.filter(belongs).map(({ document }) => document);
}
