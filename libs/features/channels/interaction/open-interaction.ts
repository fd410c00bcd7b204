/*
 * Incomplete interactions as the state of a channel has them. Their content is JSON text and their sizes are counted, so
 * that the cost of an event depends on the content that it adds, and not on the length of the interaction.
 */
import type { StreamEvent } from '#libs/kernel/event.ts';

import {
  type ChangeEvent,
  type Interaction,
  type InteractionPosted,
  type StoredContent,
  withDetails,
} from './interaction.events.ts';

/** An incomplete interaction, or one that an event has just completed. */
export interface OpenInteraction extends Omit<Interaction, 'content'> {
  /** The items of its content, with commas between them. */
  readonly items: string;
  /** Of `items`, in UTF-8. */
  readonly itemBytes: number;
  /** Of all members that callers control. */
  readonly bytes: number;
}

export function opened({ content, ...interaction }: Interaction): OpenInteraction {
  return openedWith(interaction, itemsOf(content));
}

/** @param items as in {@link OpenInteraction} */
export function openedWith(interaction: Omit<Interaction, 'content'>, items: string): OpenInteraction {
  const itemBytes = Buffer.byteLength(items);
  return { ...interaction, items, itemBytes, bytes: withComma(itemBytes) + bytesBesideContent(interaction) };
}

const changes = new WeakMap<
  StreamEvent<ChangeEvent>,
  { readonly before: OpenInteraction; readonly after: OpenInteraction }
>();

/**
 * As {@link changed}. The result is complete after any event but an addition. It is made once for each event: the fold,
 * the read model, the frame and the reply use it.
 */
export function changedOpen(before: OpenInteraction, event: StreamEvent<ChangeEvent>): OpenInteraction {
  const known = changes.get(event);
  if (known?.before === before) return known.after;
  const after = afterEvent(before, event);
  changes.set(event, { before, after });
  return after;
}

function afterEvent(open: OpenInteraction, event: ChangeEvent): OpenInteraction {
  switch (event.type) {
    case 'InteractionContentAppended.v1': {
      const added = itemsOf(event.data.content);
      const addedBytes = Buffer.byteLength(added);
      return {
        ...open,
        // V8 joins strings without copying them.
        items: joinItems(open.items, added),
        itemBytes: open.itemBytes === 0 ? addedBytes : open.itemBytes + withComma(addedBytes),
        bytes: open.bytes + withComma(addedBytes),
      };
    }
    case 'InteractionCompleted.v2': {
      const { content: replacement } = event.data;
      const items = replacement === null ? open.items : itemsOf(replacement);
      return { ...openedWith(withDetails(open, event.data), items), complete: true };
    }
    case 'InteractionFailed.v1':
      return { ...open, complete: true, failure: event.data.reason };
  }
}

/** Items of content as JSON, with commas between them. */
export function itemsOf(content: StoredContent): string {
  return JSON.stringify(content).slice(1, -1);
}

export function joinItems(items: string, more: string): string {
  return items === '' || more === '' ? items + more : `${items},${more}`;
}

/** Bytes of the members that callers control. */
export function bytesOfPost(post: Omit<InteractionPosted, 'depth' | 'turnId'>): number {
  return bytesOf(post.content) + bytesBesideContent(post);
}

type BesideContent = Pick<InteractionPosted, 'participant' | 'metadata' | 'invocationConfig'>;

function bytesBesideContent({ participant, metadata, invocationConfig }: BesideContent): number {
  return Buffer.byteLength(JSON.stringify({ participant, metadata, invocationConfig }));
}

/** Bytes of the items as JSON, each with a comma, so that the sizes of parts add up to the size of the whole. */
export function bytesOf(content: StoredContent): number {
  return withComma(Buffer.byteLength(itemsOf(content)));
}

function withComma(bytes: number): number {
  return bytes === 0 ? 0 : bytes + 1;
}
