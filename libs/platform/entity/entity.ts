import { hash } from 'node:crypto';

import type { Fold } from '#libs/kernel/decider.ts';
import type { EntityState } from '#libs/kernel/entity.ts';
import type { DomainEvent } from '#libs/kernel/event.ts';
import type { EventCodec } from '#libs/platform/eventstore/index.ts';
import { type EventContent, FRAME_FLAG } from '#libs/platform/live/index.ts';
import {
  ALL_ORGANIZATIONS,
  encodeDocument,
  listMember,
  type ProjectedEvent,
  type Projection,
  withFrames,
} from '#libs/platform/readmodel/index.ts';

/** Folded states that are objects are entities; `null` and texts stand for an entity that does not exist. */
export type AnyState = EntityState | string | null;
export type EntityOf<State extends AnyState> = Extract<State, EntityState>;

/** Values to filter lists by. `null` and `undefined` give no facet, an array one for each of its elements. */
export type Facets = Readonly<Record<string, string | boolean | readonly string[] | null | undefined>>;

/** A filter: the facets that an entity must have, all of them. Absent names do not filter. */
export type FilterOf<F extends Facets> = {
  readonly [Name in keyof F]?: (F[Name] extends readonly string[] ? string : F[Name]) | undefined;
};

type FrameOf<State, E extends DomainEvent> = (one: ProjectedEvent<State, E>) => EventContent | string;

export interface EntityDeclaration<State extends AnyState, E extends DomainEvent, F extends Facets> {
  /** Category of the streams: `user` for `user-<id>`. */
  readonly category: string;
  /** Raise it with every change of the state, of `resource` or of `facets`: the read models are then rebuilt. */
  readonly version: number;
  readonly codec: EventCodec<E>;
  readonly fold: Fold<State, E>;
  /** The entity as the API answers it. */
  readonly resource: (entity: EntityOf<State>) => object;
  readonly facets: (entity: EntityOf<State>) => F;
  /** The frame that subscribers receive of an event; a text is the type of a frame with the entity. Default: none. */
  readonly frame?: FrameOf<State, E>;
  /** Frames follow from their events alone: event streams of long entities are read from their positions. Default: false. */
  readonly hasPlainFrames?: boolean;
  /** Whether there are no more events for now: event streams of the entity end. They also end when it is deleted. */
  readonly isEnded?: (entity: EntityOf<State>) => boolean;
  /** Facets by which entities of all organizations are found; see {@link Entities.lookedUp}. Default: none. */
  readonly lookUps?: (entity: EntityOf<State>) => Facets;
  /** False for entities that are read by their ids alone: no list holds them. Default: true. */
  readonly isListed?: boolean;
  /** The entities are organizations: each belongs to itself, and one list holds all of them. Default: false. */
  readonly isTenant?: boolean;
}

/** A kind of entity: what it is, and how its streams become documents and lists. Holds no store. */
export interface EntityType<State extends AnyState, E extends DomainEvent, F extends Facets> extends EntityDeclaration<
  State,
  E,
  F
> {
  readonly isTenant: boolean;
  readonly projection: Projection<State, E>;
  /** The JSON of `resource`: made once for each state, because the document and the reply to a command use it. */
  readonly json: (entity: EntityOf<State>) => string;
}

const ALL = 'all';

/**
 * Declares a kind of entity: one stream for each, one document, and one list for each organization, newest first.
 *
 *     export const noteEntity = entity({
 *       category: 'note', version: 1, codec: noteCodec, fold: noteFold,
 *       resource: (note) => ({ id: note.id, text: note.text }),
 *       facets: (note) => ({ is_done: note.isDone }),
 *     });
 *
 * `new Entities(noteEntity, core)` runs its commands and reads; `EntityReplies` answers HTTP requests with them.
 */
export function entity<State extends AnyState, E extends DomainEvent, F extends Facets>(
  declaration: EntityDeclaration<State, E, F>,
): EntityType<State, E, F> {
  const {
    category,
    version,
    codec,
    fold,
    resource,
    facets,
    frame,
    lookUps,
    isEnded = () => false,
    isListed = true,
    isTenant = false,
  } = declaration;
  const jsons = new WeakMap<EntityOf<State>, string>();
  const json = (entity: EntityOf<State>): string => {
    const known = jsons.get(entity) ?? JSON.stringify(resource(entity));
    jsons.set(entity, known);
    return known;
  };
  const projection: Projection<State, E> = {
    category,
    version,
    codec,
    fold,
    project({ organizationId, id, after, events }, keys) {
      const entity = entityOf(after);
      if (entity === null) return { operations: [], lists: [] };
      const owner = isTenant ? ALL_ORGANIZATIONS : organizationId;
      const owners = lookUps === undefined ? [owner] : [owner, ALL_ORGANIZATIONS];
      const member = listMember(entity.createdAt, id);
      const revision = events.at(-1)?.revision ?? entity.changedRevision;
      if (isDeleted(entity)) {
        return {
          operations: [{ command: 'DEL', key: keys.document, args: [] }],
          lists: owners.map((listOwner) => ({ owner: listOwner, member, facets: [], revision })),
        };
      }
      const document = encodeDocument(entity.changedRevision, json(entity));
      const operations = [{ command: 'SET', key: keys.document, args: [document] }] as const;
      if (!isListed) return { operations, lists: [] };
      const lists = [{ owner, member, facets: [ALL, ...facetNames(facets(entity))], revision }];
      if (lookUps !== undefined) {
        lists.push({ owner: ALL_ORGANIZATIONS, member, facets: facetNames(lookUps(entity)), revision });
      }
      return { operations, lists };
    },
  };
  return {
    ...declaration,
    isTenant,
    json,
    projection: frame ? withFrames(projection, contentOf(frame, json, isEnded)) : projection,
  };
}

/** With the flag of a last event. */
function contentOf<State extends AnyState, E extends DomainEvent>(
  frame: FrameOf<State, E>,
  json: (entity: EntityOf<State>) => string,
  isEnded: (entity: EntityOf<State>) => boolean,
): (one: ProjectedEvent<State, E>) => EventContent {
  return (one) => {
    const [framed, after] = [frame(one), entityOf(one.after)];
    const content: EventContent =
      typeof framed === 'string' ? { type: framed, json: after === null ? 'null' : json(after) } : framed;
    if (after === null || !(isDeleted(after) || isEnded(after))) return content;
    return { ...content, flags: (content.flags ?? 0) | FRAME_FLAG.last };
  };
}

export function entityOf<State extends AnyState>(state: State): EntityOf<State> | null {
  return typeof state === 'object' ? (state as EntityOf<State> | null) : null;
}

export function isDeleted(entity: EntityState): boolean {
  return typeof entity.deletedAt === 'string';
}

/** The facets that a list is filtered by; without any, the one that all entities have. */
export function facetsOfFilter(filter: Facets): readonly [string, ...string[]] {
  const [first = ALL, ...others] = facetNames(filter);
  return [first, ...others];
}

function facetNames(facets: Facets): string[] {
  return Object.entries(facets).flatMap(([name, value]) => {
    if (value === null || value === undefined) return [];
    return (Array.isArray(value) ? value : [value]).map((one) => `${name}=${withoutSpace(String(one))}`);
  });
}

/** The index of an entity names its facets in one text, with spaces between them. */
function withoutSpace(value: string): string {
  return value.replaceAll(/[%\s]/g, encodeURIComponent);
}

/** The facet of a text of any length: facets are keys of Redis. */
export function digestFacet(text: string): string {
  return hash('sha256', text, 'base64url');
}

/** The facet of a status such as `Failed: <why>`: its first word, so that `Failed` and a whole label find the same. */
export function firstWordFacet(label: string): string {
  return /^\s*([a-z]*)/i.exec(label)?.[1]?.toLowerCase() ?? '';
}
