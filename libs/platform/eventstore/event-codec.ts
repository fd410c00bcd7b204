import type { z } from 'zod';
import type { DomainEvent, EventMetadata, StreamEvent } from '#libs/kernel/event.ts';
import { CorruptEventError } from '#libs/kernel/faults.ts';
import { admitJson } from '#libs/kernel/text.ts';
import { eventMetadataSchema } from './event-metadata.ts';
import type { StoredEvent } from './event-store.ts';

type EventType = DomainEvent['type'];
type EventSchemas = Readonly<Record<EventType, z.ZodType<object>>>;

/** The union of the events that `Schemas` declares: `{ type: 'ChannelCreated.v1', data: … } | …`. */
type EventsOf<Schemas extends EventSchemas> = {
  [Type in keyof Schemas & EventType]: { readonly type: Type; readonly data: z.infer<Schemas[Type]> };
}[keyof Schemas & EventType];

interface AnyVersion {
  readonly type: string;
  readonly data: unknown;
}

/** Converts the data of an old event type to the next version; see {@link upcast}. */
type Upcaster = (data: unknown) => AnyVersion;
/** By old type. The next version may be old as well; the schema of the last one applies. */
type Upcasters = Readonly<Record<string, Upcaster>>;

/** Converts the events of one stream category between their typed and their stored form. Validates in both directions. */
export interface EventCodec<E extends DomainEvent> {
  /** Every type that `decode` accepts, old versions included. */
  readonly types: ReadonlySet<string>;
  /** How many events of unknown types `decode` has skipped, by type. */
  readonly skipped: ReadonlyMap<string, number>;

  /**
   * The data to store, without keys that the schema lacks and with well-formed texts (`admitText`). Folds use this instead of the input, so that the writer and
   * every later reader get the same state.
   *
   * @throws TypeError for an event that does not match its schema, which is a bug
   */
  encode<Event extends E>(event: Event): Extract<E, { type: Event['type'] }>['data'];

  /**
   * The event in its newest version; null for a foreign event, or if its type is unknown (counted in `skipped`).
   *
   * @throws CorruptEventError for a known type with invalid data or metadata
   */
  decode(stored: StoredEvent): StreamEvent<E> | null;
}

/** Metadata to store. @throws TypeError as for {@link EventCodec.encode} */
export function encodeMetadata(metadata: EventMetadata): EventMetadata {
  return parsed(eventMetadataSchema, metadata, (problem) => new TypeError(`event metadata is invalid: ${problem}`));
}

/**
 * The codec of the events that `schemas` declares, by type.
 *
 *     const codec = defineEvents({ 'ChannelCreated.v1': z.object({ name: z.string() }) });
 *     type ChannelEvent = EventOf<typeof codec>;
 *
 * Events are parsed when they are written and when they are read, so a schema must accept its own output and leave it
 * unchanged: it may add members that stored events lack, and transforms nothing else.
 */
export function defineEvents<const Schemas extends EventSchemas>(
  schemas: Schemas,
  options: { readonly upcasters?: Upcasters } = {},
): EventCodec<EventsOf<Schemas>> {
  return new SchemaCodec<EventsOf<Schemas>>(schemas, options.upcasters ?? {});
}

/** The union of the events that a codec decodes. */
export type EventOf<Codec> = Codec extends EventCodec<infer E> ? E : never;

/** An upcaster that first validates the old data against the frozen schema of its version. */
export function upcast<Old>(
  frozen: z.ZodType<Old>,
  next: (data: Old) => { readonly type: EventType; readonly data: object },
): Upcaster {
  return (data) => next(parsed(frozen, data, (problem) => new CorruptEventError(problem)));
}

/** Unknown types come from newer versions of Parley. More names than this are not types but garbage. */
const MAX_SKIPPED_TYPES = 1000;

class SchemaCodec<E extends DomainEvent> implements EventCodec<E> {
  readonly types: ReadonlySet<string>;
  readonly skipped = new Map<string, number>();
  readonly #schemas: ReadonlyMap<string, z.ZodType<object>>;
  readonly #upcasters: ReadonlyMap<string, Upcaster>;

  constructor(schemas: EventSchemas, upcasters: Upcasters) {
    this.#schemas = new Map(Object.entries(schemas));
    this.#upcasters = new Map(Object.entries(upcasters));
    for (const type of this.#upcasters.keys()) {
      if (this.#schemas.has(type)) throw new TypeError(`${type} has a schema and an upcaster: remove one of them`);
    }
    this.types = new Set([...this.#schemas.keys(), ...this.#upcasters.keys()]);
  }

  encode<Event extends E>(event: Event): Extract<E, { type: Event['type'] }>['data'] {
    const schema = this.#schemas.get(event.type);
    if (!schema) throw new TypeError(`no schema for events of type ${event.type}`);
    const data = parsed(
      schema,
      event.data,
      (problem) => new TypeError(`${event.type} does not match its schema: ${problem}`),
    );
    // REST refuses such texts. All others are admitted where they enter, or here at the latest.
    return admitJson(data);
  }

  decode(stored: StoredEvent): StreamEvent<E> | null {
    if (!this.types.has(stored.type)) {
      if (stored.foreign === undefined) this.#countSkipped(stored.type);
      return null;
    }
    const newest = this.#upcasters.has(stored.type) ? this.#newest(stored) : stored;
    const schema = this.#schemas.get(newest.type);
    if (!schema) throw corrupt(stored, `upcast to ${newest.type}, which no schema declares`);
    const event = {
      type: newest.type,
      data: parsed(schema, newest.data, (problem) => corrupt(stored, problem)),
      id: stored.id,
      revision: stored.revision,
      metadata: parsed(eventMetadataSchema, stored.metadata, (problem) => corrupt(stored, `metadata: ${problem}`)),
    };
    // The schema of the type has validated the data.
    return event as unknown as StreamEvent<E>;
  }

  /** Applies upcasters, at most as many as there are: more steps are a cycle. */
  #newest(stored: StoredEvent): AnyVersion {
    let current: AnyVersion = stored;
    for (let step = 0; step <= this.#upcasters.size; step++) {
      const next = this.#upcasters.get(current.type);
      if (!next) return current;
      try {
        current = next(current.data);
      } catch (error) {
        throw corrupt(stored, `upcasting ${current.type}: ${String(error)}`, error);
      }
    }
    throw new TypeError(`the upcasters of ${stored.type} form a cycle`);
  }

  #countSkipped(type: string): void {
    const count = this.skipped.get(type);
    if (count === undefined && this.skipped.size >= MAX_SKIPPED_TYPES) return;
    this.skipped.set(type, (count ?? 0) + 1);
  }
}

/**
 * One codec for a stream that several features write to, each with its own event types.
 *
 * @throws TypeError when two of them declare the same type
 */
export function composeCodecs<E extends DomainEvent>(codecs: readonly EventCodec<E>[]): EventCodec<E> {
  const owners = new Map<string, EventCodec<E>>();
  for (const codec of codecs) {
    for (const type of codec.types) {
      if (owners.has(type)) throw new TypeError(`two features of one stream declare ${type}`);
      owners.set(type, codec);
    }
  }
  const [first] = codecs;
  if (first === undefined) throw new TypeError('a stream needs at least one codec');
  // The first codec counts the unknown types.
  const ownerOf = (type: string): EventCodec<E> => owners.get(type) ?? first;
  return {
    types: new Set(owners.keys()),
    skipped: first.skipped,
    encode: (event) => ownerOf(event.type).encode(event),
    decode: (stored) => ownerOf(stored.type).decode(stored),
  };
}

function corrupt(stored: StoredEvent, problem: string, cause?: unknown): CorruptEventError {
  const where = `${stored.type} ${stored.stream}@${stored.revision} (${stored.id})`;
  return new CorruptEventError(`${where}: ${problem}`, { cause });
}

/** @throws the error that `failure` makes of the problems, as one line */
function parsed<T>(schema: z.ZodType<T>, value: unknown, failure: (problem: string) => Error): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const problems = result.error.issues.map((issue) => `${issue.path.join('.') || '(root)'}: ${issue.message}`);
  throw failure(problems.join('; '));
}

/** A string in the metadata of a stored event, whose shape is unknown. */
export function textOf(metadata: unknown, name: string): string | undefined {
  if (typeof metadata !== 'object' || metadata === null) return undefined;
  const value: unknown = Reflect.get(metadata, name);
  return typeof value === 'string' ? value : undefined;
}
