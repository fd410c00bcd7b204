import { z } from 'zod';

import type { ChannelSequence } from '#libs/kernel/event.ts';
import type { CollectionReader } from '#libs/platform/readmodel/index.ts';

import type { InteractionDocuments, Reading } from './interactions.documents.ts';
import { interactionKeys } from './interactions.keys.ts';
import { sequenceOfChild } from './interactions.projection.ts';
import { isComplete, spanIdOf } from './stored-interaction.ts';
import type { ToolCallUpdate } from './tool-call-updates.ts';

/** More descendants than this are not shown below one interaction. */
const MAX_NESTED = 2_000;

/** All that hangs below a span, ordered by sequence. */
export async function descendants(
  { collections, documents }: { readonly collections: CollectionReader; readonly documents: InteractionDocuments },
  reading: Reading,
  spanId: string,
  { includeIncomplete }: { readonly includeIncomplete: boolean },
): Promise<Buffer[]> {
  const { organizationId, channelId, view } = reading;
  const { children } = interactionKeys(organizationId, channelId);
  const found = new Map<ChannelSequence, Buffer>();
  // A level of the tree at a time: as many round trips as it is deep, and no tree is deeper than 64.
  for (let parents = [spanId]; parents.length > 0 && found.size < MAX_NESTED;) {
    const prefixes = parents.map((parent) => `${parent} `);
    const members = (await collections.withPrefixes(children, prefixes, MAX_NESTED - found.size)).flat();
    const there = members.map(sequenceOfChild).filter((sequence) => sequence < view.end);
    const sequences = there.slice(0, MAX_NESTED - found.size);
    parents = [];
    for (const [index, document] of (await documents.of(reading, sequences)).entries()) {
      const sequence = sequences[index];
      if (document === null || sequence === undefined) continue;
      found.set(sequence, document);
      parents.push(spanIdOf(document));
    }
  }
  const sequences = [...found.keys()].sort((a, b) => a - b);
  const all = sequences.flatMap((sequence) => found.get(sequence) ?? []);
  return includeIncomplete ? all : all.filter(isComplete);
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
