import { streamRevision, type GlobalPosition } from '#libs/kernel/event.ts';

import type { AppendResult } from '../event-store.ts';
import { Fields, Unusual } from './protobuf-fields.ts';

export interface AppendSuccess {
  readonly correlationId: string;
  readonly result: AppendResult;
}

/**
 * Decodes `event_store.client.streams.BatchAppendResp` of a success. The generated classes make a reader and an object of
 * each of its messages.
 *
 * @returns null for errors, and for forms that are left to the generated classes
 */
export function decodeAppendSuccess(bytes: Buffer): AppendSuccess | null {
  try {
    let correlationId: string | undefined;
    let result: AppendResult | undefined;
    const fields = new Fields(bytes, 0, bytes.length);
    while (fields.next()) {
      if (fields.field === 1) correlationId = textIn(fields.message());
      else if (fields.field === 3) result = resultIn(fields.message());
      else fields.skip();
    }
    return correlationId === undefined || result === undefined ? null : { correlationId, result };
  } catch (error) {
    if (error instanceof Unusual) return null;
    throw error;
  }
}

/** A UUID as text; others are two numbers. */
function textIn(uuid: Fields): string {
  if (!uuid.next() || uuid.field !== 2) throw new Unusual();
  return uuid.text();
}

function resultIn(success: Fields): AppendResult {
  let revision = 0;
  let position: GlobalPosition | null = null;
  while (success.next()) {
    if (success.field === 1) revision = Number(success.varint());
    else if (success.field === 3) position = positionIn(success.message());
    else success.skip();
  }
  return { kind: 'appended', revision: streamRevision(revision), position };
}

function positionIn(position: Fields): GlobalPosition {
  let [commit, prepare] = [0n, 0n];
  while (position.next()) {
    if (position.field === 1) commit = BigInt(position.varint());
    else if (position.field === 2) prepare = BigInt(position.varint());
    else position.skip();
  }
  return { commit, prepare };
}
