import { z } from 'zod';

import type { InteractionDocuments, Reading } from './interactions.documents.ts';
import { interactionKeys } from './interactions.keys.ts';
import type { InteractionTreeIndex } from './interactions.tree-index.ts';
import { isComplete, spanIdOf } from './stored-interaction.ts';
import type { ToolCallUpdate } from './tool-call-updates.ts';

/** What is shown below one interaction: more would hold up everybody else's reads while it travels. */
const MAX_NESTED = 2_000;
const MAX_NESTED_BYTES = 16 * 1024 * 1024;

/** All that hangs below a span, ordered by sequence; of more than fits, what is nearest to the span. */
export async function descendants(
  { tree, documents }: { readonly tree: InteractionTreeIndex; readonly documents: InteractionDocuments },
  reading: Reading,
  spanId: string,
  { includeIncomplete }: { readonly includeIncomplete: boolean },
): Promise<Buffer[]> {
  const { organizationId, channelId, view } = reading;
  const keys = interactionKeys(organizationId, channelId);
  const sequences = await tree.below(keys, spanId, {
    end: view.end,
    limit: MAX_NESTED,
    bytes: MAX_NESTED_BYTES,
  });
  const found = (await documents.of(reading, sequences)).filter((document) => document !== null);
  return includeIncomplete ? found : found.filter(isComplete);
}

const ownPlace = z.object({ interaction_id: z.string().nullable(), parent_span_id: z.string().nullable() });

/**
 * Of the updates of a channel's tool calls, those that belong below an interaction: the ones whose parent is
 * shown, and those of its turn. The latter are all of the turn where it begins one (it has no parent itself);
 * further down, where others of the turn belong elsewhere, only those that name no parent.
 *
 * @param below what is shown below the interaction
 */
export function updatesBelow(
  interaction: Buffer,
  below: readonly Buffer[],
  updates: readonly ToolCallUpdate[],
): Buffer[] {
  if (updates.length === 0) return [];
  const { interaction_id: turnId, parent_span_id: parentSpanId } = ownPlace.parse(JSON.parse(interaction.toString()));
  const spans = new Set([interaction, ...below].map(spanIdOf));
  const belongs = (update: ToolCallUpdate): boolean => {
    if (update.parentSpanId !== null && spans.has(update.parentSpanId)) return true;
    const isOfTurn = turnId !== null && update.turnId === turnId;
    return isOfTurn && (parentSpanId === null || update.parentSpanId === null);
  };
  return updates.filter(belongs).map(({ document }) => document);
}

/** Spliced in before the closing brace: what is stored is sent as it is. */
export function withNested(document: Buffer, below: readonly Buffer[]): Buffer {
  const parts: Buffer[] = [document.subarray(0, -1), Buffer.from(',"nested_interactions":[')];
  for (const [index, one] of below.entries()) parts.push(...(index === 0 ? [one] : [Buffer.from(','), one]));
  return Buffer.concat([...parts, Buffer.from(']}')]);
}
