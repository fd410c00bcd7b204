import type { EntityId } from '#libs/kernel/ids.ts';

/**
 * Names the read models of one stream category in one shape. The version goes up with every change of what is stored;
 * read models of several versions exist side by side while processes are replaced.
 */
export interface ReadModelName {
  /** Category of the streams: `channel` for `channel-<id>`. */
  readonly category: string;
  readonly version: number;
  /** Members of the state that are stored apart from each other, so that a run writes only what it changes. */
  readonly parts?: readonly string[] | undefined;
}

/** Everything below it can be deleted and rebuilt from the log. */
export const READ_MODELS_PREFIX = 'parley:rm:';

export function readModelPrefix({ category, version }: ReadModelName): string {
  return `${READ_MODELS_PREFIX}${category}:v${version}:`;
}

/** Until now one version counted for all categories; this is the last of these versions. */
export const LAST_COMMON_VERSION = 10;

export function commonPrefix(version: number): string {
  return `${READ_MODELS_PREFIX}v${version}:`;
}

/** Hash tag of everything that describes the progress of projectors: all of it lies in one slot. */
const PROJECTION = '{projection}:';

export interface ProjectionKeys {
  /** Names this build of the read models; gone or changed when they were deleted or are rebuilt. */
  readonly build: string;
  /** The log position up to which a projector has applied all events of the category: a hint where to start. */
  readonly checkpoint: string;
  /** Set once the read models hold the whole log; until then "missing" means "not yet". */
  readonly complete: string;
  /** JSON: an event that the read models hold, see `LogWitness`. */
  readonly witness: string;
}

export function projectionKeys(name: ReadModelName): ProjectionKeys {
  return projectionKeysUnder(readModelPrefix(name));
}

/** @param prefix `readModelPrefix` of a category, or `commonPrefix` */
export function projectionKeysUnder(prefix: string): ProjectionKeys {
  return {
    build: `${prefix}${PROJECTION}build`,
    checkpoint: `${prefix}${PROJECTION}checkpoint`,
    complete: `${prefix}${PROJECTION}complete`,
    witness: `${prefix}${PROJECTION}witness`,
  };
}

/** Hash: checkpoints of the partitions of a Kafka topic, by projectors of exactly these read models. */
export function partitionsKey(names: readonly ReadModelName[]): string {
  const list = names.map(({ category, version }) => `${category}.v${version}`).toSorted();
  return `${READ_MODELS_PREFIX}${PROJECTION}partitions:${list.join(',')}`;
}

/** An entity and its organization. */
export interface EntityRef {
  readonly category: string;
  readonly organizationId: EntityId;
  readonly id: EntityId;
}

/** Keys of one entity, all in one slot: the hash tag names the entity and its organization. */
export interface EntityKeys {
  /** Stream revision that the entity's other keys reflect. */
  readonly revision: string;
  /** The fold's state at that revision, as JSON: where a cold command starts. See {@link stateKeys} for its parts. */
  readonly state: string;
  /** The entity as REST answers it: see `document.ts`. */
  readonly document: string;
}

export function entityKeys(name: ReadModelName, organizationId: EntityId, id: EntityId): EntityKeys {
  return entityKeysUnder(`${readModelPrefix(name)}{${organizationId}:${id}}:`);
}

/** The keys of the parts of the state, in their order; one for all of a state without parts. */
export function stateKeys({ parts }: Pick<ReadModelName, 'parts'>, { state }: EntityKeys): readonly string[] {
  return parts?.map((part) => partKey(state, part)) ?? [state];
}

export function partKey(state: string, part: string): string {
  return `${state}:${part}`;
}

/** Keys of one list: the known facets of each member, and the prefix of its sorted indexes. */
export interface ListKeys {
  readonly members: string;
  readonly indexPrefix: string;
}

/** Owner of the lists across organizations. */
export const ALL_ORGANIZATIONS = 'all';

/** @param owner the organization that the list belongs to, or {@link ALL_ORGANIZATIONS} */
export function listKeys(name: ReadModelName, owner: EntityId): ListKeys {
  return listKeysUnder(`${readModelPrefix(name)}list:{${owner}}:`);
}

export type KeyOwner =
  { readonly kind: 'entity'; readonly keys: EntityKeys } | { readonly kind: 'list'; readonly keys: ListKeys };

const OWNER = /^[^:]+:rm:[^:]+:v\d+:(list:)?\{([^}]*)\}:/;

/** The entity or the list that a key is part of; null for projection state. */
export function ownerOf(key: string): KeyOwner | null {
  const [prefix, list, tag] = OWNER.exec(key) ?? [];
  if (prefix === undefined || tag === 'projection') return null;
  if (list !== undefined) return { kind: 'list', keys: listKeysUnder(prefix) };
  return { kind: 'entity', keys: entityKeysUnder(prefix) };
}

function entityKeysUnder(prefix: string): EntityKeys {
  return { revision: `${prefix}revision`, state: `${prefix}state`, document: `${prefix}document` };
}

function listKeysUnder(prefix: string): ListKeys {
  return { members: `${prefix}members`, indexPrefix: `${prefix}by:` };
}
