import type { EntityId } from '#libs/kernel/ids.ts';

import { FRAME_FLAG } from './event-frame.ts';
import type { ReadyJson } from './event-frame.ts';

/** A frame about something that is in no log: it may be dropped, and a newer one with its key takes its place. */
export interface LiveValue {
  /** A mask of `FRAME_FLAG`: who has not asked for all of them is not sent it. */
  readonly flags: number;
  /** Without blanks and line breaks. */
  readonly key: string;
  /** JSON text of the whole frame, on one line. */
  readonly json: string;
}

/** Port: the current values of a channel that are not in the log. May be incomplete, never stale. */
export interface LiveValues {
  current(organizationId: EntityId, channelId: EntityId): Promise<readonly LiveValue[]>;
}

/** What the text of one interaction that is being written travels under. */
export const draftKey = (interactionId: string): string => `draft:${interactionId}`;

/** More text of an interaction that is being written. @param offset UTF-16 code units before it */
export function deltaJson(interactionId: string, offset: number, text: string): string {
  return JSON.stringify({ frame: 'delta', interaction_id: interactionId, offset, text });
}

/** All text so far of an interaction that is being written. */
export function snapshotJson(interactionId: string, text: string): string {
  return JSON.stringify({ frame: 'snapshot', interaction_id: interactionId, text });
}

/** The JSON of an ephemeral frame around its `n`, which a store may have to choose. */
export function ephemeralJson(
  key: string,
  data: ReadyJson,
  ttlMs: number,
): { readonly beforeN: string; readonly afterN: string } {
  return {
    beforeN: `{"frame":"ephemeral","key":${JSON.stringify(key)},"n":`,
    afterN: `,"data":${data.json},"ttl_ms":${ttlMs}}`,
  };
}

export function ephemeralValue(of: {
  readonly key: string;
  readonly n: number;
  readonly data: ReadyJson;
  readonly ttlMs: number;
}): LiveValue {
  const { beforeN, afterN } = ephemeralJson(of.key, of.data, of.ttlMs);
  return { flags: FRAME_FLAG.ephemeral, key: of.key, json: `${beforeN}${of.n}${afterN}` };
}
