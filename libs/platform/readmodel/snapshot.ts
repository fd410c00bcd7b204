import { streamRevision, type StreamRevision } from '#libs/kernel/event.ts';

import { stateKeys, type EntityKeys, type ReadModelName } from './read-model.keys.ts';

/** An entity as it was last projected. */
export interface Snapshot {
  readonly revision: StreamRevision;
  readonly state: unknown;
}

/** How a part of a state is stored whose values other keys of the entity hold already, such as documents. */
export interface StoredState<State> {
  /** The stored form of the state, JSON. An event that does not change it does not write it. */
  pack(state: State): unknown;
  /** The keys of the other values, which are strings. */
  keysOf(packed: unknown, keys: EntityKeys): readonly string[];
  /** @param values of the keys, in their order */
  unpack(packed: unknown, values: readonly string[]): State;
}

/** A category of entities, and how their states are stored. */
export interface StoredEntityType extends ReadModelName {
  /** By part of the state; the others are stored as JSON. */
  readonly storedParts?: Readonly<Record<string, StoredState<unknown>>> | undefined;
}

/** An entity, and the read model that it is in. */
export interface StoredEntity {
  readonly projection: StoredEntityType;
  readonly keys: EntityKeys;
}

/** The values of an entity's revision, of the parts of its state, and of what these are stored with; null for missing ones. */
export type SnapshotTexts = readonly (string | null)[];

/** The keys of {@link SnapshotTexts}. @param known what was read of them, without or with the last ones */
export function snapshotKeys({ projection, keys }: StoredEntity, known: SnapshotTexts = []): readonly string[] {
  const { parts = [], storedParts = {} } = projection;
  const states = known.slice(1);
  const others = parts.flatMap((part, at) => {
    const packed = storedParts[part] && states[at];
    return packed == null ? [] : (storedParts[part]?.keysOf(JSON.parse(packed), keys) ?? []);
  });
  return [keys.revision, ...stateKeys(projection, keys), ...others];
}

/** @returns null if a value is missing */
export function snapshotOf({ projection, keys }: StoredEntity, texts: SnapshotTexts): Snapshot | null {
  if (texts.includes(null)) return null;
  const [revision = '', ...values] = texts.map(String);
  const { parts, storedParts = {} } = projection;
  const states = values.splice(0, parts?.length ?? 1).map((text): unknown => JSON.parse(text));
  const stateOf = ([part, state]: readonly [string, unknown]): readonly [string, unknown] => {
    const packing = storedParts[part];
    if (packing === undefined) return [part, state];
    return [part, packing.unpack(state, values.splice(0, packing.keysOf(state, keys).length))];
  };
  const state = parts ? Object.fromEntries(parts.map((part, at) => stateOf([part, states[at]]))) : states[0];
  return { revision: streamRevision(Number(revision)), state };
}
