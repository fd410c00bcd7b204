/*
 * The format of `parley export`: a line for the channel, then one for each of its interactions by sequence, in the
 * form of the REST API, with the member `export`. A file may hold several channels. Spans and turns keep their ids;
 * channels and interactions get new ones.
 */
import { z } from 'zod';

import { createChannelBody } from '#libs/features/channels/index.ts';
import { locateRawNumbers, numberProblem } from '#libs/platform/http/index.ts';

import { objectOfLine } from './conversation.ts';
import {
  asObject,
  BadInput,
  type ChannelDraft,
  checkedMessage,
  fitsAsMap,
  type MessageDraft,
  parsedBy,
  type Place,
  type ThreadDraft,
} from './import.model.ts';

type ParleyLine =
  | { readonly kind: 'channel'; readonly channel: ChannelDraft }
  | { readonly kind: 'interaction'; readonly channelKey: string; readonly message: MessageDraft };

const name = z.string().max(10_000);
const exportedInteraction = z.object({
  sender_name: name.optional(),
  reactions: z
    .array(
      z.object({
        emoji: z.string().min(1).max(100),
        reactor: z.object({ type: z.enum(['user', 'agent']), id: name.min(1), name: name.nullable() }),
      }),
    )
    .max(1_000)
    .optional(),
  starts_thread: z.boolean().optional(),
});
const exportedChannel = z.object({
  origin: z.object({ span_id: z.string(), interaction_id: z.string().nullable() }).optional(),
});

/** @throws BadInput */
export function parseParley(line: string, place: Place): ParleyLine {
  const source = objectOfLine(line);
  const [raw] = locateRawNumbers(line, 1);
  if (raw !== undefined) throw new BadInput(`${raw.loc.join('.')}: ${numberProblem(raw.number).msg}`);
  if ('content_role' in source) return interactionOf(source, place);
  if ('channel_type' in source && typeof source['id'] === 'string') {
    return { kind: 'channel', channel: channelOf(source, source['id'], place) };
  }
  throw new BadInput('neither a channel nor an interaction');
}

function channelOf(source: Record<string, unknown>, id: string, place: Place): ChannelDraft {
  const participants = Array.isArray(source['participants']) ? source['participants'] : [];
  const parent = source['parent_channel_id'];
  const channel = {
    ...source,
    participants,
    // A file may lack the parent of a thread: then the link is kept in `meta_data`.
    channel_type: source['channel_type'] === 'thread' ? 'chat' : source['channel_type'],
    parent_channel_id: null,
    origin_message_id: null,
    meta_data:
      typeof parent !== 'string'
        ? source['meta_data']
        : {
            ...asObject(source['meta_data']),
            source_parent_channel_id: parent,
            source_origin_message_id: source['origin_message_id'] ?? null,
          },
  };
  const body = parsedBy(createChannelBody, channel, '', 'channel: ');
  const thread = typeof parent === 'string' ? threadOf(source, parent) : undefined;
  return { key: channelKey(id), place, body, names: namesOf(participants), thread };
}

function threadOf(source: Record<string, unknown>, parent: string): ThreadDraft {
  const { origin } = parsedBy(exportedChannel, source['export'] ?? {}, 'export', 'export.');
  const { meta_data: metaData } = parsedBy(createChannelBody.pick({ meta_data: true }), source, '', 'channel: ');
  return {
    parentKey: channelKey(parent),
    origin: origin ? { spanId: origin.span_id, turnId: origin.interaction_id } : null,
    metaData: metaData ?? null,
  };
}

function interactionOf(source: Record<string, unknown>, place: Place): ParleyLine {
  const { channel_id: channelId, span_id: spanId, parent_span_id: parentSpanId, created_at: createdAt } = source;
  if (typeof channelId !== 'string' || typeof spanId !== 'string') throw new BadInput('no channel_id or span_id');
  const about = parsedBy(exportedInteraction, source['export'] ?? {}, 'export', 'export.');
  // A message that was incomplete when it was exported is imported as complete: its author cannot complete the copy.
  const marks = source['complete'] === false ? { source_complete: false } : {};
  const noted = { source_time: createdAt, ...marks, ...asObject(source['metadata']) };
  // Metadata at its size limit has no room for `source_time`.
  const checked = checkedMessage({ ...source, complete: true, ...(fitsAsMap(noted) && { metadata: noted }) });
  const parentKey = typeof parentSpanId === 'string' ? parentSpanId : null;
  const { sender_name: senderName, reactions, starts_thread: startsThread } = about;
  return {
    kind: 'interaction',
    channelKey: channelKey(channelId),
    message: { place, key: spanId, parentKey, keepsIds: true, ...checked, senderName, reactions, startsThread },
  };
}

/** Names of the participants that refer to users and agents, which are resolved later, by `ImportTarget`. */
function namesOf(participants: readonly unknown[]): ReadonlyMap<string, string> {
  const entries = participants
    .map(asObject)
    .map((one) => [one?.['user_id'] ?? one?.['id'], one?.['display_name'] ?? one?.['name']]);
  return new Map(entries.filter((entry): entry is [string, string] => entry.every((word) => typeof word === 'string')));
}

function channelKey(id: string): string {
  return `parley\n${id}`;
}
