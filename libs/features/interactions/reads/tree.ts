import { z } from 'zod';

import type { EntityId } from '#libs/kernel/ids.ts';
import { FunctionLibrary } from '#libs/platform/redis/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import type { ToolCallUpdate } from '../tool-call-updates.ts';
import { interactionKeys } from './interaction.keys.ts';
import { spanIdOf } from './resource.ts';

/** Bounds of the descendants that are shown below one interaction: reading more would delay all other reads. */
const MAX_NESTED = 2_000;
const MAX_NESTED_BYTES = 16 * 1024 * 1024;

const sequences = z.array(z.int());

/** Finds the descendants of a span, in one round trip however deep its tree is. */
export class InteractionTreeIndex {
  readonly #functions: FunctionLibrary;

  constructor({ redis }: Pick<Platform, 'redis'>) {
    this.#functions = new FunctionLibrary(redis, new URL('./lua/interaction-tree.lua', import.meta.url));
  }

  /**
   * The sequences of the interactions below a span, ascending. Of more than the bounds allow, those nearest to the span.
   *
   * @param end interactions from this sequence on are left out
   * @throws `Fault` `store_unavailable`
   */
  async below(organizationId: EntityId, channelId: EntityId, spanId: string, end: number): Promise<number[]> {
    const { children, documents } = interactionKeys(organizationId, channelId);
    const args = [spanId, Math.min(end, Number.MAX_SAFE_INTEGER), MAX_NESTED, MAX_NESTED_BYTES];
    const [found] = await this.#functions.callAll([
      { name: 'parley_interaction_descendants_v2', keys: [children, documents], args },
    ]);
    return sequences.parse(found).sort((a, b) => a - b);
  }
}

const placeInTree = z.object({ interaction_id: z.string().nullable(), parent_span_id: z.string().nullable() });

/**
 * The tool-call updates of a channel that are shown below an interaction: those whose parent is shown, and those of its
 * turn. An interaction without a parent begins its turn, and gets all updates of it; one further down gets only those
 * that name no parent.
 *
 * @param below the descendants that are shown
 */
export function updatesBelow(
  interaction: Buffer,
  below: readonly Buffer[],
  updates: readonly ToolCallUpdate[],
): Buffer[] {
  if (updates.length === 0) return [];
  const { interaction_id: turnId, parent_span_id: parentSpanId } = placeInTree.parse(
    JSON.parse(interaction.toString()),
  );
  const spans = new Set([interaction, ...below].map(spanIdOf));
  const belongs = (update: ToolCallUpdate): boolean => {
    if (update.parentSpanId !== null && spans.has(update.parentSpanId)) return true;
    const isOfTurn = turnId !== null && update.turnId === turnId;
    return isOfTurn && (parentSpanId === null || update.parentSpanId === null);
  };
  return updates.filter(belongs).map(({ document }) => document);
}
