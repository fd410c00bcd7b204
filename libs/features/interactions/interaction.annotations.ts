import type { EntityId } from '#libs/kernel/ids.ts';
import type { Principal } from '#libs/platform/http/index.ts';

/** Who reads. */
export interface Reader {
  /** Null for services: nothing is theirs. */
  readonly userId: EntityId | null;
}

export function readerOf({ principalType, principalId }: Principal): Reader {
  return { userId: principalType === 'user' ? principalId : null };
}

/** What was added to an interaction after it was posted, as one reader sees it: the contract's members. */
export interface Annotation {
  readonly reactions: readonly object[] | null;
  readonly mention_invite_prompt_dismissed: boolean;
  readonly agent_read_receipts: readonly object[] | null;
}

/**
 * Port: what other features add to interactions.
 *
 * Guarantees: asks Redis at once, so that it travels with what else is asked for in the same turn of the
 * event loop. Only interactions that have something to show are in the answer.
 */
export interface Annotations {
  /**
   * @param end what was added by the event of this sequence, or a later one, is left out; `Infinity` for none
   * @throws `Fault` `store_unavailable`
   */
  of(
    organizationId: EntityId,
    channelId: EntityId,
    sequences: readonly number[],
    reader: Reader,
    end: number,
  ): Promise<ReadonlyMap<number, Annotation>>;
}

/** How the stored JSON of every interaction ends: see `interactionResource`. */
const NOTHING_ADDED = Buffer.from(
  '"reactions":null,"mention_invite_prompt_dismissed":false,"agent_read_receipts":null}',
);

/** Stored bytes with what was added to the interaction; the very same bytes where nothing was. */
export function annotated(document: Buffer, annotation: Annotation | undefined): Buffer {
  if (annotation === undefined) return document;
  const end = document.length - NOTHING_ADDED.length;
  if (end < 0 || NOTHING_ADDED.compare(document, end) !== 0) {
    throw new TypeError('a stored interaction does not end as it is written');
  }
  const { reactions, mention_invite_prompt_dismissed, agent_read_receipts } = annotation;
  const members = JSON.stringify({ reactions, mention_invite_prompt_dismissed, agent_read_receipts });
  return Buffer.concat([document.subarray(0, end), Buffer.from(members.slice(1))]);
}
