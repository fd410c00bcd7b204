/** Under whose name a caller may write: see `mayActAs`. */
import { mayActAs, UNAUTHENTICATED } from '#libs/platform/http/index.ts';
import type { ActingAs, Caller } from '#libs/platform/http/index.ts';

/** A sender as it is stored; what else belongs to its type does not matter here. */
export interface Sender {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** Who writes, or the operator of the installation, who may write as any sender. */
export type Writer = Caller | 'operator';

export function mayWriteAs(writer: Writer, sender: Sender): boolean {
  return writer === 'operator' || mayActAs(writer, nameOf(sender));
}

function nameOf({ type, user_id: userId }: Sender): ActingAs {
  switch (type) {
    case 'authenticated_user':
      return { type: 'user', id: String(userId) };
    case 'system':
      return { type: 'system' };
    default:
      return UNAUTHENTICATED;
  }
}
