/*
 * The interaction as the API returns it (contract, section 2.12): serialized once per event, stored, and sent as stored.
 * Reads extract members from the bytes, because parsing them would cost more than the rest of the read.
 */
import type { z } from 'zod';

import type { ChannelSequence, StreamEvent } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

import type { interactionParticipant, StoredContentItem } from '../interaction.content.ts';
import {
  type ChangeEvent,
  posted,
  type Interaction,
  type PostedEvent,
  superseded,
  type SupersedingEvent,
} from '../interaction.events.ts';
import { interactionId } from '../interaction.id.ts';
import { itemsOf, openedWith, type OpenInteraction } from '../open-interaction.ts';

export interface Owner {
  readonly organizationId: EntityId;
  readonly channelId: EntityId;
}

/** The interaction as it is stored: without annotations. */
export function interactionJson(
  interaction: Omit<Interaction, 'depth'> & Partial<Pick<Interaction, 'depth'>>,
  owner: Owner,
): string {
  const { sequence } = interaction;
  return json(interaction, owner, { id: interactionId({ channelId: owner.channelId, sequence }), sequence });
}

/** An interaction outside of the log: it has no sequence, and cannot be read by its id. */
export function ephemeralJson(
  interaction: Omit<Interaction, 'sequence' | 'depth'>,
  owner: Owner,
  id: EntityId,
): string {
  return json(interaction, owner, { id, sequence: null });
}

const postedJsons = new WeakMap<StreamEvent<PostedEvent>, string>();

/** The interaction that an event posted. Cached, because the read model, the frame and the reply use it. */
export function postedJson(event: StreamEvent<PostedEvent>, owner: Owner): string {
  let text = postedJsons.get(event);
  if (text === undefined) postedJsons.set(event, (text = interactionJson(posted(event), owner)));
  return text;
}

const supersededJsons = new WeakMap<StreamEvent<SupersedingEvent>, string>();

/** The interaction that an edit or a deletion left. Cached like {@link postedJson}. */
export function supersededJson(event: StreamEvent<SupersedingEvent>, owner: Owner): string {
  let text = supersededJsons.get(event);
  if (text === undefined) supersededJsons.set(event, (text = interactionJson(superseded(event), owner)));
  return text;
}

/** The JSON of an interaction that is or was incomplete: `interactionJson` is `head`, the items, and `tail`. */
interface OpenParts {
  readonly head: string;
  readonly tail: string;
}

export function openJson(open: OpenInteraction, owner: Owner): string {
  const { head, tail } = openParts(open, owner);
  return head + open.items + tail;
}

const changedJsons = new WeakMap<
  StreamEvent<ChangeEvent>,
  { readonly after: OpenInteraction; readonly json: string }
>();

/** The interaction that an event left, as {@link changedOpen} made it. Cached like {@link postedJson}. */
export function changedJson(after: OpenInteraction, event: StreamEvent<ChangeEvent>, owner: Owner): string {
  const known = changedJsons.get(event);
  if (known?.after === after) return known.json;
  const json = openJson(after, owner);
  changedJsons.set(event, { after, json });
  return json;
}

/** The same bytes in the same order as in {@link json}. */
export function openParts(open: OpenInteraction, owner: Owner): OpenParts {
  const { sequence } = open;
  const ids = { id: interactionId({ channelId: owner.channelId, sequence }), sequence };
  const [head, tail] = [
    JSON.stringify(membersBefore(open, owner, ids)),
    JSON.stringify(membersAfter(open, owner, ids)),
  ];
  return { head: `${head.slice(0, -1)},"content":[`, tail: `],${tail.slice(1)}` };
}

/** A stored interaction in the terms of its events: only here is a document of an interaction parsed. */
export interface StoredInteraction extends Omit<Interaction, 'depth' | 'failure' | 'editedAt'> {
  readonly participant: z.output<typeof interactionParticipant>;
  readonly content: StoredContentItem[];
}

/** @param document from {@link json}, annotated or not; tool-call updates have no sequence */
export function interactionOf(document: string | Buffer): StoredInteraction {
  // Not validated: requests were, and a schema would change the order of members, and thus the bytes of the next document.
  const stored = JSON.parse(document.toString());
  return {
    participant: stored.participant,
    content: stored.content,
    contentRole: stored.content_role,
    metadata: stored.metadata,
    invocationConfig: stored.invocation_config,
    turnId: stored.interaction_id,
    spanId: stored.span_id,
    parentSpanId: stored.parent_span_id,
    organizationApplication: stored.organization_application,
    createdAt: stored.created_at,
    sequence: stored.sequence,
    complete: stored.complete,
    ...(stored.deleted_at !== undefined && { deletedAt: stored.deleted_at }),
  };
}

/** The incomplete interaction that {@link openJson} made, whose depth is not part of its JSON. */
export function openFromJson(text: string, depth: number): OpenInteraction {
  const { content, ...stored } = interactionOf(text);
  return openedWith({ ...stored, complete: false, depth, failure: null }, itemsOf(content));
}

const NO_ANNOTATIONS = { reactions: null, mention_invite_prompt_dismissed: false, agent_read_receipts: null };

type Ids = { readonly id: EntityId; readonly sequence: ChannelSequence | null };
type BesideContent = Omit<Interaction, 'content' | 'sequence' | 'depth'>;

function json(interaction: BesideContent & Pick<Interaction, 'content'>, owner: Owner, ids: Ids): string {
  return JSON.stringify({
    ...membersBefore(interaction, owner, ids),
    content: interaction.content,
    ...membersAfter(interaction, owner, ids),
  });
}

function membersBefore({ createdAt, participant }: BesideContent, { channelId }: Owner, { id }: Ids): object {
  return { id, created_at: createdAt, channel_id: channelId, participant };
}

function membersAfter(interaction: BesideContent, owner: Owner, { sequence }: Ids): object {
  const { failure, metadata } = interaction;
  return {
    content_role: interaction.contentRole,
    metadata: failure === null ? metadata : { ...metadata, failure },
    invocation_config: interaction.invocationConfig,
    interaction_id: interaction.turnId,
    sequence,
    span_id: interaction.spanId,
    parent_span_id: interaction.parentSpanId,
    organization_id: owner.organizationId,
    organization_application: interaction.organizationApplication,
    ...(interaction.editedAt !== undefined && { edited_at: interaction.editedAt }),
    // Directly before `complete`, where `isDeleted` finds it.
    ...(interaction.deletedAt !== undefined && { deleted_at: interaction.deletedAt }),
    // These last, and in this order: `isComplete` and `annotated` find them in the stored bytes.
    complete: interaction.complete,
    ...NO_ANNOTATIONS,
  };
}

/*
 * Members are searched from the end: only members that the server names follow them, and quotation marks inside strings
 * are escaped, so the search never finds a caller's text.
 */
const COMPLETE = '"complete":';
const SPAN_ID = '"span_id":';
const PARENT = ',"parent_span_id":';
const LETTER_T = 0x74;
const CREATED_AT = '"created_at":"';
const TIMESTAMP_LENGTH = '2026-01-31T12:00:00.000Z'.length;

/** @param document stored bytes, annotated or not */
export function isComplete(document: Buffer): boolean {
  return document[endOfLast(document, COMPLETE)] === LETTER_T;
}

const DELETED_AT = ',"deleted_at":"';

/** @param document stored bytes, annotated or not */
export function isDeleted(document: Buffer): boolean {
  const end = endOfLast(document, COMPLETE) - COMPLETE.length - 2 - TIMESTAMP_LENGTH;
  return document.toString('latin1', end - DELETED_AT.length, end) === DELETED_AT;
}

/** @param document stored bytes, annotated or not */
export function spanIdOf(document: Buffer): string {
  const start = endOfLast(document, SPAN_ID);
  return String(JSON.parse(document.toString('utf8', start, document.indexOf(PARENT, start))));
}

/** Unix milliseconds. Only the id precedes `created_at`, so the first match is the interaction's own. */
export function createdMsOf(document: Buffer): number {
  const start = document.indexOf(CREATED_AT) + CREATED_AT.length;
  return Date.parse(document.toString('latin1', start, start + TIMESTAMP_LENGTH));
}

function endOfLast(document: Buffer, name: string): number {
  const at = document.lastIndexOf(name);
  if (at < 0) throw new TypeError(`a stored interaction has no ${name}`);
  return at + name.length;
}

/** The members of an interaction that other features add, as one reader sees them (contract, section 2.12). */
export interface Annotation {
  readonly reactions: readonly object[] | null;
  readonly mention_invite_prompt_dismissed: boolean;
  readonly agent_read_receipts: readonly object[] | null;
}

const NO_ANNOTATIONS_END = Buffer.from(JSON.stringify(NO_ANNOTATIONS).slice(1));

/** Stored bytes with an annotation; the same bytes without one. */
export function annotated(document: Buffer, annotation: Annotation | undefined): Buffer {
  if (annotation === undefined) return document;
  const end = document.length - NO_ANNOTATIONS_END.length;
  if (end < 0 || NO_ANNOTATIONS_END.compare(document, end) !== 0) {
    throw new TypeError('a stored interaction does not end as it is written');
  }
  const { reactions, mention_invite_prompt_dismissed, agent_read_receipts } = annotation;
  const members = JSON.stringify({ reactions, mention_invite_prompt_dismissed, agent_read_receipts });
  return Buffer.concat([document.subarray(0, end), Buffer.from(members.slice(1))]);
}

const NESTED = ',"nested_interactions":';
const NOTHING_NESTED = Buffer.from(`${NESTED}null}`);

/** Stored bytes with `nested_interactions`: null in each of `nested`, which are the descendants of all levels. */
export function withNested(document: Buffer, nested: readonly Buffer[]): Buffer {
  const parts: Buffer[] = [document.subarray(0, -1), Buffer.from(`${NESTED}[`)];
  for (const [index, one] of nested.entries()) {
    if (index > 0) parts.push(Buffer.from(','));
    parts.push(one.subarray(0, -1), NOTHING_NESTED);
  }
  return Buffer.concat([...parts, Buffer.from(']}')]);
}
