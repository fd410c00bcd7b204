import { encodeDocument, listMember } from '#libs/platform/readmodel/index.ts';
import type { Projection } from '#libs/platform/readmodel/index.ts';

import { endOf, keyFold } from './key.decider.ts';
import type { Key, KeyState } from './key.decider.ts';
import { KEY, keyCodec } from './key.events.ts';
import type { KeyEvent } from './key.events.ts';

export const keyProjection: Projection<KeyState, KeyEvent> = {
  category: KEY,
  version: 1,
  codec: keyCodec,
  fold: keyFold,
  project({ organizationId, id, after }, keys) {
    if (after === null || after === 'withdrawn') return { operations: [], lists: [] };
    return {
      operations: [
        { command: 'SET', key: keys.document, args: [encodeDocument(after.changedRevision, keyResource(after))] },
      ],
      lists: [{ owner: organizationId, member: listMember(after.createdAt, id), facets: facetsOfKey(after) }],
    };
  },
};

/** What a list of keys can be narrowed by. */
export interface KeyFilter {
  readonly principalId?: string | undefined;
  readonly isRevoked?: boolean | undefined;
}

export function facetsOfFilter({ principalId, isRevoked }: KeyFilter): [string, ...string[]] {
  const facets: [string, ...string[]] = ['all'];
  if (principalId !== undefined) facets.push(`principal=${principalId}`);
  if (isRevoked !== undefined) facets.push(isRevoked ? 'revoked' : 'unrevoked');
  return facets;
}

function facetsOfKey(key: Key): string[] {
  return facetsOfFilter({ principalId: key.principal.id, isRevoked: key.revokedAt !== null });
}

/** The key as the API answers it: nothing by which it could be used. */
export function keyResource(key: Key): object {
  return {
    id: key.id,
    organization_id: key.organizationId,
    name: key.name,
    principal: key.principal,
    scopes: key.scopes,
    last_four: key.lastFour,
    created_at: key.createdAt,
    expires_at: endOf(key),
    revoked_at: key.revokedAt,
    rotated_from: key.rotatedFrom,
    rotated_to: key.rotatedTo,
  };
}
