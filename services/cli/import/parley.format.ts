/*
 * The format of `parley export`: a line for the channel, then one for each of its interactions by sequence, in the
 * form of the REST API. A file may hold several channels. Spans and turns keep their ids; channels and interactions
 * get new ones.
 */
import { createChannelBody } from '#libs/features/channels/index.ts';
import { locateRawNumbers, numberProblem } from '#libs/platform/http/index.ts';

import { objectOfLine } from './conversation.ts';
import { asObject, BadInput, checkedMessage, fitsAsMap, parsedBy } from './import.model.ts';
import type { ChannelDraft, MessageDraft, Place } from './import.model.ts';

export type ParleyLine =
  | { readonly kind: 'channel'; readonly channel: ChannelDraft }
  | { readonly kind: 'interaction'; readonly channelKey: string; readonly message: MessageDraft };

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
    // The parent of a thread is not part of the file: the link is kept in `meta_data`.
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
  return { key: channelKey(id), place, body, names: namesOf(participants) };
}

function interactionOf(source: Record<string, unknown>, place: Place): ParleyLine {
  const { channel_id: channelId, span_id: spanId, parent_span_id: parentSpanId, created_at: createdAt } = source;
  if (typeof channelId !== 'string' || typeof spanId !== 'string') throw new BadInput('no channel_id or span_id');
  const noted = { source_time: createdAt, ...asObject(source['metadata']) };
  // Metadata at its size limit has no room for `source_time`.
  const body = checkedMessage(fitsAsMap(noted) ? { ...source, metadata: noted } : source);
  const parentKey = typeof parentSpanId === 'string' ? parentSpanId : null;
  return {
    kind: 'interaction',
    channelKey: channelKey(channelId),
    message: { place, key: spanId, parentKey, keepsIds: true, body },
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
