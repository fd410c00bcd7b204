import { z } from 'zod';
import type { DomainEvent, EventMetadata, StreamEvent } from '#libs/kernel/event.ts';
import { CorruptEventError } from '#libs/kernel/faults.ts';
import type { StoredEvent } from './event-store.ts';

type EventType = DomainEvent['type'];
type EventSchemas = Readonly<Record<EventType, z.ZodType<object>>>;

/** The union of the events that `Schemas` declares: `{ type: 'ChannelCreated.v1', data: … } | …`. */
export type EventsOf<Schemas extends EventSchemas> = {
  [Type in keyof Schemas & EventType]: { readonly type: Type; readonly data: z.infer<Schemas[Type]> };
}[keyof Schemas & EventType];

/** Turns the data of an old event type into the next version of it; write it with {@link upcast}. */
export type Upcaster = (data: unknown) => { readonly type: string; readonly data: unknown };

/** What a check answers; `problem` is one line for people. */
export type Checked<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string };
export type Check<T> = (value: unknown) => Checked<T>;

/** Makes the check of a schema. zod by default; a compiled validator that agrees with it can go here. */
export type CompileCheck = <T>(schema: z.ZodType<T>) => Check<T>;

export interface CodecOptions {
  /** By old type. Each gives a newer version, which may be old itself; the last one is checked. */
  readonly upcasters?: Readonly<Record<string, Upcaster>>;
  readonly compile?: CompileCheck;
}

/** Between the events of one kind of stream and what the log holds. Checks in both directions. */
export interface EventCodec<E extends DomainEvent> {
  /** Every type that `decode` accepts, old versions included. */
  readonly types: ReadonlySet<string>;
  /** How many events of unknown types `decode` has skipped, by type. */
  readonly skipped: ReadonlyMap<string, number>;

  /**
   * The data to store: checked, and stripped of keys that the schema does not name. Fold this, not what
   * was handed in, so that the writer and every later reader see the same.
   *
   * Errors: `TypeError` when the event does not fit its own schema, which is a mistake in the program.
   */
  encode<Event extends E>(event: Event): Extract<E, { type: Event['type'] }>['data'];

  /**
   * The event in its newest version, or null if its type is unknown (counted in `skipped`).
   *
   * Errors: {@link CorruptEventError} when the type is known and the data or the metadata do not fit.
   */
  decode(stored: StoredEvent): StreamEvent<E> | null;
}

/** The shape of metadata in the log. Keys that it does not name are allowed, and dropped. */
export const eventMetadataSchema = z.object({
  at: z.iso.datetime(),
  organizationId: z.string().min(1),
  actor: z.object({ type: z.enum(['user', 'service', 'system']), id: z.string().min(1) }),
  commandId: z.string().min(1),
  $correlationId: z.string().min(1),
  $causationId: z.string().min(1),
  traceparent: z.string().optional(),
  idempotencyKey: z.string().optional(),
}) satisfies z.ZodType<EventMetadata>;

/** Metadata as it may be stored. Errors: `TypeError`, as for {@link EventCodec.encode}. */
export function encodeMetadata(metadata: EventMetadata): EventMetadata {
  const checked = checkWithZod(eventMetadataSchema)(metadata);
  if (!checked.ok) throw new TypeError(`event metadata does not fit: ${checked.problem}`);
  return checked.value;
}

/**
 * The codec of the events that `schemas` declares, by type.
 *
 *     const codec = defineEvents({ 'ChannelCreated.v1': z.object({ name: z.string() }) });
 *     type ChannelEvent = EventOf<typeof codec>;
 *
 * Schemas must not transform: what one of them gives, it must accept again, as events pass through it
 * on their way in and on their way out.
 */
export function defineEvents<const Schemas extends EventSchemas>(
  schemas: Schemas,
  options: CodecOptions = {},
): EventCodec<EventsOf<Schemas>> {
  return new SchemaCodec<EventsOf<Schemas>>(schemas, options);
}

/** The union of events that a codec (or anything with its `decode`) gives. */
export type EventOf<Codec> = Codec extends EventCodec<infer E> ? E : never;

/** An upcaster that first checks the old data against the frozen schema of its version. */
export function upcast<Old>(
  frozen: z.ZodType<Old>,
  next: (data: Old) => { readonly type: EventType; readonly data: object },
): Upcaster {
  const check = checkWithZod(frozen);
  return (data) => {
    const checked = check(data);
    if (!checked.ok) throw new CorruptEventError(checked.problem);
    return next(checked.value);
  };
}

/** Unknown types come from newer versions of Parley; more than this many names means garbage. */
const MAX_SKIPPED_TYPES = 1000;

class SchemaCodec<E extends DomainEvent> implements EventCodec<E> {
  readonly types: ReadonlySet<string>;
  readonly skipped = new Map<string, number>();
  readonly #checks: ReadonlyMap<string, Check<object>>;
  readonly #upcasters: ReadonlyMap<string, Upcaster>;
  readonly #checkMetadata: Check<EventMetadata>;

  constructor(schemas: EventSchemas, options: CodecOptions) {
    const compile = options.compile ?? checkWithZod;
    this.#checks = new Map(Object.entries(schemas).map(([type, schema]) => [type, compile(schema)]));
    this.#upcasters = new Map(Object.entries(options.upcasters ?? {}));
    this.#checkMetadata = compile(eventMetadataSchema);
    for (const type of this.#upcasters.keys()) {
      if (this.#checks.has(type)) throw new TypeError(`${type} has a schema and an upcaster: one must go`);
    }
    this.types = new Set([...this.#checks.keys(), ...this.#upcasters.keys()]);
  }

  encode<Event extends E>(event: Event): Extract<E, { type: Event['type'] }>['data'] {
    const check = this.#checks.get(event.type);
    if (!check) throw new TypeError(`no schema for events of type ${event.type}`);
    const checked = check(event.data);
    if (!checked.ok) throw new TypeError(`${event.type} does not fit its schema: ${checked.problem}`);
    return checked.value;
  }

  decode(stored: StoredEvent): StreamEvent<E> | null {
    if (!this.types.has(stored.type)) {
      this.#countSkipped(stored.type);
      return null;
    }
    const newest = this.#upcasters.has(stored.type) ? this.#newest(stored) : stored;
    const data = this.#checks.get(newest.type)?.(newest.data);
    if (!data) throw corrupt(stored, `upcast to ${newest.type}, which no schema declares`);
    if (!data.ok) throw corrupt(stored, data.problem);
    const metadata = this.#checkMetadata(stored.metadata);
    if (!metadata.ok) throw corrupt(stored, `metadata: ${metadata.problem}`);
    const event = {
      type: newest.type,
      data: data.value,
      id: stored.id,
      revision: stored.revision,
      metadata: metadata.value,
    };
    // The one place where the checks above, made at run time, become a static type.
    return event as unknown as StreamEvent<E>;
  }

  /** Follows the upcasters; there are no more steps than upcasters unless they run in a circle. */
  #newest(stored: StoredEvent): { readonly type: string; readonly data: unknown } {
    let current: { readonly type: string; readonly data: unknown } = stored;
    for (let step = 0; step <= this.#upcasters.size; step++) {
      const next = this.#upcasters.get(current.type);
      if (!next) return current;
      try {
        current = next(current.data);
      } catch (error) {
        throw corrupt(stored, `upcasting ${current.type}: ${String(error)}`, error);
      }
    }
    throw new TypeError(`the upcasters of ${stored.type} run in a circle`);
  }

  #countSkipped(type: string): void {
    const count = this.skipped.get(type);
    if (count === undefined && this.skipped.size >= MAX_SKIPPED_TYPES) return;
    this.skipped.set(type, (count ?? 0) + 1);
  }
}

function corrupt(stored: StoredEvent, problem: string, cause?: unknown): CorruptEventError {
  const where = `${stored.type} ${stored.stream}@${stored.revision} (${stored.id})`;
  return new CorruptEventError(`${where}: ${problem}`, { cause });
}

function checkWithZod<T>(schema: z.ZodType<T>): Check<T> {
  return (value) => {
    const parsed = schema.safeParse(value);
    if (parsed.success) return { ok: true, value: parsed.data };
    const problem = parsed.error.issues
      .map((issue) => `${issue.path.join('.') || '(root)'}: ${issue.message}`)
      .join('; ');
    return { ok: false, problem };
  };
}

/** A string in the metadata of a stored event, whose shape is unknown. */
export function textOf(metadata: unknown, name: string): string | undefined {
  if (typeof metadata !== 'object' || metadata === null) return undefined;
  const value: unknown = Reflect.get(metadata, name);
  return typeof value === 'string' ? value : undefined;
}
