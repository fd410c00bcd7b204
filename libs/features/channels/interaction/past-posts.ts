import { accept } from '#libs/kernel/decider.ts';
import { type ChannelSequence, sequenceOf, type StreamRevision, streamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';

import { channelKeys } from '../channel.keys.ts';
import type { ChannelHandler } from '../stream.ts';

import type { RequestedPost } from './interaction.commands.ts';
import { type ChannelStream, decidePost, type InteractionRejection, type KnownSpan } from './interaction.ts';
import type { PostedEvent } from './interaction.events.ts';
import { decodeSpan } from './reads/projection.ts';

export interface PastPost {
  /** Posted as complete. */
  readonly interaction: RequestedPost['interaction'];
  /** Posted as a root if the channel does not have its parent. */
  readonly parentMayBeMissing?: boolean | undefined;
}

export type PastPostResult =
  | { readonly ok: true; readonly sequence: ChannelSequence }
  | { readonly ok: false; readonly rejection: InteractionRejection };

/**
 * Posts interactions of the past, such as the messages of an import, many as one command: they share its id, its time and its
 * append, into which their events must fit. Each has a span of its own, by which a repetition finds that it was posted.
 */
export class PastPosts {
  readonly #handler: ChannelHandler;

  constructor(handler: ChannelHandler) {
    this.#handler = handler;
  }

  /**
   * Posts in the given order. Subscribers of the channel read the interactions from the log.
   *
   * @returns a result for each interaction
   * @throws the faults of `CommandHandler.handle`
   */
  async post(
    context: CommandContext,
    channelId: EntityId,
    posts: readonly PastPost[],
  ): Promise<readonly PastPostResult[]> {
    const { organizationId } = context;
    const { spans } = channelKeys(organizationId, channelId);
    const named = new Set(posts.flatMap(({ interaction }) => [interaction.spanId, interaction.parentSpanId]));
    const lookups = [...named].flatMap((field) => (field === null ? [] : [{ key: spans, field }]));
    let results: readonly PastPostResult[] = [];
    await this.#handler.handle(
      channelId,
      { ...context, isPast: true },
      (state, { next, found }) => {
        const spanAt = (field: string): KnownSpan | null => {
          const known = found({ key: spans, field });
          return known === null ? null : decodeSpan(known);
        };
        const decided = decidePast(state, posts, { organizationId, next, spanAt });
        ({ results } = decided);
        return accept(...decided.events);
      },
      lookups,
    );
    return results;
  }
}

interface Before {
  readonly organizationId: EntityId;
  /** The revision of the first event. */
  readonly next: StreamRevision;
  /** The spans of the interactions that were posted before. */
  spanAt(spanId: string): KnownSpan | null;
}

/** Pure. Each interaction is decided after those before it, which it may be below. */
export function decidePast(
  state: ChannelStream,
  posts: readonly PastPost[],
  { organizationId, next, spanAt }: Before,
): { readonly events: readonly PostedEvent[]; readonly results: readonly PastPostResult[] } {
  const events: PostedEvent[] = [];
  const posted = new Map<string, KnownSpan>();
  const known = (spanId: string): KnownSpan | null => posted.get(spanId) ?? spanAt(spanId);
  const results = posts.map(({ interaction, parentMayBeMissing = false }): PastPostResult => {
    const { spanId, parentSpanId } = interaction;
    const parent = parentSpanId === null ? null : known(parentSpanId);
    const isRoot = parent === null && parentMayBeMissing;
    const decision = decidePost(state, {
      ...interaction,
      complete: true,
      organizationId,
      parentSpanId: isRoot ? null : parentSpanId,
      parent,
      spanTaken: known(spanId) !== null,
    });
    if (!decision.ok) return decision;
    const sequence = sequenceOf(streamRevision(next + events.length));
    for (const event of decision.events) {
      events.push(event);
      posted.set(spanId, event.data);
    }
    return { ok: true, sequence };
  });
  return { events, results };
}
