import type { EntityId } from '#libs/kernel/ids.ts';

/** Everything below can be thrown away and rebuilt from the log. */
export const READ_MODEL_PREFIX = 'parley:rm:v7:';

/** State of the projection as a whole; one slot. */
export const PROJECTION_KEYS = {
  /** Names this building of the read models; gone or changed when they were emptied or are rebuilt. */
  build: `${READ_MODEL_PREFIX}{projection}:build`,
  /** The log position up to which a projector has applied everything: a hint where to start. */
  checkpoint: `${READ_MODEL_PREFIX}{projection}:checkpoint`,
  /** Set once the read models hold the whole log; until then "not there" means "not yet". */
  complete: `${READ_MODEL_PREFIX}{projection}:complete`,
} as const;

/** Keys of one entity, all in one slot: the hash tag names the entity and its organization. */
export interface EntityKeys {
  /** Stream revision that the entity's other keys reflect. */
  readonly revision: string;
  /** The fold's state at that revision, as JSON: where a cold command starts. */
  readonly state: string;
  /** The entity as REST answers it: see `document.ts`. */
  readonly document: string;
}

/** @param noun the stream's category, such as `channel` */
export function entityKeys(noun: string, organizationId: EntityId, id: EntityId): EntityKeys {
  return entityKeysUnder(`${READ_MODEL_PREFIX}${noun}:{${organizationId}:${id}}:`);
}

/** Keys of one list: the facets known of each member, and the prefix of its sorted indexes. */
export interface ListKeys {
  readonly members: string;
  readonly indexPrefix: string;
}

/** @param owner the organization that the list belongs to, or `all` for lists across organizations */
export function listKeys(noun: string, owner: EntityId): ListKeys {
  return listKeysUnder(`${READ_MODEL_PREFIX}${noun}-list:{${owner}}:`);
}

/** What a key of the read models is part of. */
export type KeyOwner =
  { readonly kind: 'entity'; readonly keys: EntityKeys } | { readonly kind: 'list'; readonly keys: ListKeys };

const LIST = /^(.*?-list:\{[^}]*\}:)/;
const ENTITY = /^(.*?:\{[^}]*\}:)/;
const PROJECTION = new Set<string>(Object.values(PROJECTION_KEYS));

/** The entity or the list that a key is part of; null for the keys of the projection as a whole. */
export function ownerOf(key: string): KeyOwner | null {
  if (PROJECTION.has(key)) return null;
  const list = LIST.exec(key)?.[1];
  if (list !== undefined) return { kind: 'list', keys: listKeysUnder(list) };
  const entity = ENTITY.exec(key)?.[1];
  return entity === undefined ? null : { kind: 'entity', keys: entityKeysUnder(entity) };
}

function entityKeysUnder(prefix: string): EntityKeys {
  return { revision: `${prefix}revision`, state: `${prefix}state`, document: `${prefix}document` };
}

function listKeysUnder(prefix: string): ListKeys {
  return { members: `${prefix}members`, indexPrefix: `${prefix}by:` };
}
