import type { EntityId } from '#libs/kernel/ids.ts';

/** Goes up with every change of what is stored: versions live beside each other while processes are replaced. */
export const READ_MODEL_VERSION = 10;

export function readModelPrefix(version: number): string {
  return `parley:rm:v${version}:`;
}

/** Everything below can be thrown away and rebuilt from the log. */
export const READ_MODEL_PREFIX = readModelPrefix(READ_MODEL_VERSION);

/** State of the projection as a whole; one slot. */
export interface ProjectionKeys {
  /** Names this building of the read models; gone or changed when they were emptied or are rebuilt. */
  readonly build: string;
  /** The log position up to which a projector has applied everything: a hint where to start. */
  readonly checkpoint: string;
  /** Set once the read models hold the whole log; until then "not there" means "not yet". */
  readonly complete: string;
  /** Hash: how far each share of a shared feed has come, see `ProjectionShares`. */
  readonly shares: string;
  /** JSON: an event that the read models hold, see `LogWitness`. */
  readonly witness: string;
}

export function projectionKeys(version: number): ProjectionKeys {
  const prefix = `${readModelPrefix(version)}{projection}:`;
  return {
    build: `${prefix}build`,
    checkpoint: `${prefix}checkpoint`,
    complete: `${prefix}complete`,
    shares: `${prefix}shares`,
    witness: `${prefix}witness`,
  };
}

export const PROJECTION_KEYS = projectionKeys(READ_MODEL_VERSION);

/** Keys of one entity, all in one slot: the hash tag names the entity and its organization. */
export interface EntityKeys {
  /** Stream revision that the entity's other keys reflect. */
  readonly revision: string;
  /** The fold's state at that revision, as JSON: where a cold command starts. */
  readonly state: string;
  /** The entity as REST answers it: see `document.ts`. */
  readonly document: string;
}

/** @param category the stream's category, such as `channel` */
export function entityKeys(category: string, organizationId: EntityId, id: EntityId): EntityKeys {
  return entityKeysUnder(`${READ_MODEL_PREFIX}${category}:{${organizationId}:${id}}:`);
}

/** Keys of one list: the facets known of each member, and the prefix of its sorted indexes. */
export interface ListKeys {
  readonly members: string;
  readonly indexPrefix: string;
}

/** @param owner the organization that the list belongs to, or `all` for lists across organizations */
export function listKeys(category: string, owner: EntityId): ListKeys {
  return listKeysUnder(`${READ_MODEL_PREFIX}${category}-list:{${owner}}:`);
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
