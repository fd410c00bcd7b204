/**
 * The frames that sockets must receive: those of a socket that reads a channel from the beginning after the last write,
 * compared with the log through the official client, without Parley's own libraries.
 */
import type { ApiClient } from '#test/support/api-client.ts';
import { eventually } from '#test/support/eventually.ts';
import { asRecord, readLog, type LogEvent } from '#test/support/log-reader.ts';

import type { FrameLog } from './sequence-checker.ts';
import { Subscriber, type Include } from './subscriber.ts';

/** All frames of a channel as a socket with these includes sees them. */
export async function replay(
  node: ApiClient,
  channelId: string,
  {
    include,
    length,
    tickets = node,
  }: {
    readonly include: readonly Include[];
    readonly length: number;
    /** Who gives the ticket; the node itself where it is absent. */
    readonly tickets?: ApiClient;
  },
): Promise<FrameLog> {
  const reader = new Subscriber({
    name: `replay of ${channelId}`,
    channelId,
    nodes: [node],
    tickets: [tickets],
    include,
    after: 0,
  }).start();
  try {
    await eventually(() => reader.live && (reader.cursor ?? 0) >= length, { timeoutMs: 30_000 });
  } finally {
    await reader.stop();
  }
  if (reader.sessions.length !== 1) throw new Error(`the replay took ${reader.sessions.length} connections`);
  return (reader.session?.frames ?? []).filter((text) => asRecord(JSON.parse(text))['frame'] === 'event');
}

export async function channelLog(eventstoreUrl: string, channelId: string): Promise<LogEvent[]> {
  return readLog(eventstoreUrl, `channel-${channelId}`);
}

/** The frame's type by stored type. */
const FRAME_TYPES: Readonly<Record<string, string>> = {
  'ChannelCreated.v1': 'channel.created',
  'ChannelRenamed.v1': 'channel.updated',
  'ChannelMetaDataChanged.v1': 'channel.updated',
  'AgentInvocationBehaviorChanged.v1': 'channel.updated',
  'RunConcurrencyChanged.v1': 'channel.updated',
  'ChannelChanged.v1': 'channel.updated',
  'FileDeleted.v1': 'file.deleted',
  'ParticipantAdded.v1': 'participant.joined',
  'ParticipantRemoved.v1': 'participant.left',
  'ChannelArchived.v1': 'channel.archived',
  'InteractionPosted.v1': 'interaction.posted',
  'InteractionContentAppended.v1': 'interaction.updated',
  'InteractionCompleted.v2': 'interaction.completed',
  'InteractionFailed.v1': 'interaction.failed',
  'ReactionAdded.v1': 'reaction.added',
  'ReactionRemoved.v1': 'reaction.removed',
  'ReadReceiptRecorded.v1': 'receipt.added',
  'MentionInvitePromptDismissed.v1': 'mention_invite_prompt.dismissed',
};

/**
 * Compares the frames of a socket that includes everything with the log: one per event, in order, with its time, type
 * and texts. One line per problem.
 */
export function framesAgainstLog(frames: FrameLog, log: readonly LogEvent[]): string[] {
  const problems = frames.length === log.length ? [] : [`${frames.length} frames of ${log.length} events`];
  for (const [index, event] of log.entries()) {
    const text = frames[index];
    if (text === undefined) break;
    const { frame, seq, type, at, data } = asRecord(JSON.parse(text));
    const expectedType = FRAME_TYPES[event.type] ?? 'unknown';
    if (frame !== 'event' || seq !== index + 1 || event.revision !== index) problems.push(`${index + 1} is ${text}`);
    if (type !== expectedType) problems.push(`${index + 1}: ${event.type} has the type ${String(type)}`);
    if (at !== event.metadata['at'])
      problems.push(`${index + 1}: at is ${String(at)} instead of ${String(event.metadata['at'])}`);
    const missing = textsIn(event.data).filter((value) => !textsIn(data).includes(value));
    if (missing.length > 0) problems.push(`${index + 1}: ${missing.join(', ')} of ${event.type} is not in ${text}`);
  }
  return problems;
}

/** Compares frames with those of a socket that includes everything, without the data that it has not included. */
export function framesWithLess(
  frames: FrameLog,
  all: FrameLog,
  lacks: (data: Record<string, unknown>) => boolean,
): string[] {
  return all.flatMap((text, index) => {
    const whole = asRecord(JSON.parse(text));
    const isInteraction = String(whole['type']).startsWith('interaction.');
    const expected = isInteraction && lacks(asRecord(whole['data'])) ? JSON.stringify({ ...whole, data: null }) : text;
    return frames[index] === expected ? [] : [`${index + 1}: ${frames[index]} instead of ${expected}`];
  });
}

/** Names, texts and emoji; not ids, which have other forms in frames. */
function textsIn(value: unknown, name = ''): string[] {
  if (typeof value === 'string') return name === 'name' || name === 'text' || name === 'emoji' ? [value] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => textsIn(inner, Array.isArray(value) ? name : key));
}
