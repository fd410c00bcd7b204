/**
 * Folds the first events of a channel into its state at that point, as REST should answer it. Written as a plain fold
 * of all of them, so that a test does not repeat the shortcuts of the code under test.
 */
import type { EventStore, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { BLOCK } from '#libs/platform/readmodel/history.ts';

import { type ChannelResource, evolve, foldChannel } from './channel-fold.ts';
import { ADA } from './channel-with-a-past.ts';
import { asRecord, type LogEvent } from './log-reader.ts';

export interface PastInteraction {
  readonly sequence: number;
  readonly span_id: unknown;
  readonly parent_span_id: unknown;
  readonly content_role: unknown;
  readonly created_at: unknown;
  readonly content: readonly unknown[];
  readonly complete: boolean;
  readonly metadata: unknown;
  readonly invocation_config: unknown;
  /** As Ada sees it; without the ids that are derived from positions. */
  readonly reactions: unknown;
  readonly agent_read_receipts: unknown;
  readonly mention_invite_prompt_dismissed: boolean;
}

export interface Past {
  readonly channel: ChannelResource | null;
  readonly interactions: readonly PastInteraction[];
}

export async function streamOf(store: EventStore, stream: string): Promise<LogEvent[]> {
  const events: LogEvent[] = [];
  for await (const event of store.readStream(stream)) events.push(asLogEvent(event));
  return events;
}

function asLogEvent(event: StoredEvent): LogEvent {
  return { ...event, data: asRecord(event.data), metadata: asRecord(event.metadata) };
}

export function pastOf(events: readonly LogEvent[]): Past {
  const interactions = new Map<number, PastInteraction>();
  let channel: ChannelResource | null = null;
  for (const [revision, event] of events.entries()) {
    if (event.type === 'InteractionPosted.v1') interactions.set(revision + 1, posted(event, revision + 1));
    else if (event.type.startsWith('Interaction')) change(interactions, event);
    else if (isAnnotation(event)) continue;
    else channel = channel === null ? foldChannel([event]) : evolve(channel, event);
  }
  for (const one of interactions.values()) {
    const own = events.filter((event) => isAnnotation(event) && event.data['sequence'] === one.sequence);
    interactions.set(one.sequence, { ...one, ...annotationsOf(own) });
  }
  return { channel, interactions: [...interactions.values()] };
}

function posted({ data, metadata }: LogEvent, sequence: number): PastInteraction {
  return {
    sequence,
    span_id: data['spanId'],
    parent_span_id: data['parentSpanId'],
    content_role: data['contentRole'],
    created_at: metadata['at'],
    content: listOf(data['content']),
    complete: data['complete'] === true,
    metadata: data['metadata'],
    invocation_config: data['invocationConfig'],
    ...annotationsOf([]),
  };
}

export function isAnnotation({ type }: LogEvent): boolean {
  return /^(Reaction|ReadReceipt|MentionInvitePrompt)/.test(type);
}

/** What the events about one interaction have added to it, as Ada sees it (contract, section 2.12). */
export function annotationsOf(
  events: readonly LogEvent[],
): Pick<PastInteraction, 'reactions' | 'agent_read_receipts' | 'mention_invite_prompt_dismissed'> {
  let present: { emoji: unknown; type: unknown; id: unknown; name: unknown; target: Record<string, unknown> }[] = [];
  for (const { type, data } of events) {
    if (!type.startsWith('Reaction')) continue;
    const { type: kind, id, name } = asRecord(data['reactor']);
    present = present.filter((one) => one.emoji !== data['emoji'] || one.type !== kind || one.id !== id);
    const added = { emoji: data['emoji'], type: kind, id, name, target: asRecord(data['target']) };
    if (type === 'ReactionAdded.v1') present.push(added);
  }
  const emojis = [...new Set(present.map(({ emoji }) => emoji))];
  const reactions = emojis.map((emoji) => {
    const own = present.filter((one) => one.emoji === emoji);
    const [users, agents] = [own.filter(({ type }) => type === 'user'), own.filter(({ type }) => type === 'agent')];
    return {
      emoji,
      count: own.length,
      reacted_by_me: users.some(({ id }) => id === ADA),
      target_role: own[0]?.target['role'],
      reacted_by_agent: agents.length > 0,
      reactor_names: [...users.filter(({ id }) => id !== ADA), ...agents].flatMap(({ name }) => name ?? []),
      target_sender_id: own[0]?.target['senderId'],
    };
  });
  const receipts = events
    .filter(({ type }) => type === 'ReadReceiptRecorded.v1')
    .map(({ id, data, metadata }) => ({ id, agent_id: data['agentId'], read_at: metadata['at'] }));
  return {
    reactions: reactions.length === 0 ? null : reactions,
    agent_read_receipts: receipts.length === 0 ? null : receipts,
    mention_invite_prompt_dismissed: events.some(({ type }) => type === 'MentionInvitePromptDismissed.v1'),
  };
}

function change(interactions: Map<number, PastInteraction>, { type, data }: LogEvent): void {
  const before = interactions.get(Number(data['sequence']));
  if (before === undefined) throw new TypeError(`${type} is about no interaction`);
  const content = listOf(data['content']);
  switch (type) {
    case 'InteractionContentAppended.v1':
      interactions.set(before.sequence, { ...before, content: [...before.content, ...content] });
      return;
    case 'InteractionCompleted.v2': {
      const after = data['content'] === null ? before.content : content;
      const metadata = data['metadata'] ?? before.metadata;
      const config = data['invocationConfig'] ?? before.invocation_config;
      interactions.set(before.sequence, {
        ...before,
        content: after,
        complete: true,
        metadata,
        invocation_config: config,
      });
      return;
    }
    case 'InteractionFailed.v1':
      interactions.set(before.sequence, {
        ...before,
        complete: true,
        metadata: { ...asRecord(before.metadata ?? {}), failure: data['reason'] },
      });
      return;
    default:
      throw new TypeError(`unknown event type: ${type}`);
  }
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/**
 * Count of the events before a time, by the rule of docs/decisions/0043-times-in-a-stream-never-go-back.md: all events of the
 * blocks before the last block that had begun, and of that block those before the first with a later stamp.
 */
export function eventsUntil(events: readonly LogEvent[], timeMs: number): number {
  const stamps = events.map(({ metadata }) => Date.parse(String(metadata['at'])));
  let begin = -1;
  for (let first = 0; first < stamps.length && (stamps[first] ?? 0) <= timeMs; first += BLOCK) begin = first;
  if (begin < 0) return 0;
  const block = stamps.slice(begin, begin + BLOCK);
  const later = block.findIndex((stamp) => stamp > timeMs);
  return begin + (later < 0 ? block.length : later);
}
