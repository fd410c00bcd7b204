import type { FastifyReply, FastifyRequest } from 'fastify';

import type { Decision, Rejection } from '#libs/kernel/decider.ts';
import type { DomainEvent } from '#libs/kernel/event.ts';
import { faultAfterWrite } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import {
  commandContext,
  etagOf,
  invalid,
  notFound,
  notModified,
  openPage,
  type PageQuery,
  readPast,
  sendJson,
  sendPage,
  setPosition,
} from '#libs/platform/http/index.ts';
import type { HistoryPoint } from '#libs/platform/readmodel/index.ts';
import { streamName } from '#libs/platform/streams/index.ts';

import type { AnyState, EntityOf, Facets, FilterOf } from './entity.ts';
import type { Entities, EntityResult, NotFound } from './entities.ts';
import type { EventStreamRequest } from './event-streams.ts';

/** The error that each reason of a rejection is answered with. A reason without one is a type error. */
export type RejectionErrors<R extends Rejection> = {
  readonly [Reason in R['reason']]: (rejection: Extract<R, { readonly reason: Reason }>) => Error;
};

/** What callers are shown of entities, where `resource` is not all of it: names of others, addresses, what they may see. */
export interface Presentation<Entity> {
  of(entities: readonly Entity[], request: FastifyRequest): Promise<readonly object[]>;
  /** What is shown follows from the revision of the entity, so that reads may answer 304. */
  readonly isOfRevision?: boolean;
}

interface PastRequest<Entity> {
  readonly organizationId: EntityId;
  readonly asOf: HistoryPoint;
  /** Reads the past without the log. Default: `Entities.at`, queued with other reads of the past. */
  readonly read?: (() => Promise<Entity | null>) | undefined;
}

/** Answers HTTP requests with entities of one kind. */
export class EntityReplies<
  State extends AnyState,
  E extends DomainEvent,
  F extends Facets,
  R extends Rejection = never,
> {
  readonly #entities: Entities<State, E, F>;
  readonly #errors: RejectionErrors<R>;
  readonly #presentation: Presentation<EntityOf<State>> | undefined;

  /** @param presentation default: entities are shown as they are stored */
  constructor(
    entities: Entities<State, E, F>,
    errors: RejectionErrors<R>,
    presentation?: Presentation<EntityOf<State>>,
  ) {
    this.#entities = entities;
    this.#errors = errors;
    this.#presentation = presentation;
  }

  /**
   * Answers 304 where `If-None-Match` names the entity's `ETag`, unless what is shown changes without it.
   *
   * @throws HttpError 404
   */
  async sendOne(
    request: FastifyRequest,
    reply: FastifyReply,
    organizationId: EntityId,
    id: EntityId,
  ): Promise<FastifyReply> {
    if (this.#presentation !== undefined) {
      return this.#sendEntity(request, reply, await this.#entities.projected(organizationId, id));
    }
    const found = await this.#entities.document(organizationId, id);
    if (found === null) throw notFound();
    if (notModified(request, reply, found.revision)) return reply;
    return sendJson(reply, found.json);
  }

  /**
   * Answers with the entity as it was.
   *
   * @throws HttpError 404 before its first event, and for an entity that the organization does not have now; 429.
   *   ValidationFailure for too many events; `Fault` `store_unavailable`, `overloaded`; StreamGone
   */
  async sendPast(
    request: FastifyRequest,
    reply: FastifyReply,
    id: EntityId,
    { organizationId, asOf, read }: PastRequest<EntityOf<State>>,
  ): Promise<FastifyReply> {
    if ((await this.#entities.projected(organizationId, id)) === null) throw notFound();
    if (read !== undefined) return this.#sendEntity(request, reply, await read());
    try {
      const past = await readPast(request, reply, () => this.#entities.at(id, asOf));
      return await this.#sendEntity(request, reply, past);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw invalid(['query', 'as_of'], error.message, 'sequence' in asOf ? `${asOf.sequence}` : asOf.at);
    }
  }

  async #sendEntity(
    request: FastifyRequest,
    reply: FastifyReply,
    entity: EntityOf<State> | null,
  ): Promise<FastifyReply> {
    if (entity === null) throw notFound();
    const mayBeKept = this.#presentation === undefined || this.#presentation.isOfRevision === true;
    if (!mayBeKept) void reply.header('etag', etagOf(entity.changedRevision));
    else if (notModified(request, reply, entity.changedRevision)) return reply;
    return sendJson(reply, JSON.stringify(await this.#show(request, entity)));
  }

  async #show(request: FastifyRequest, entity: EntityOf<State>): Promise<object> {
    const [shown] = (await this.#presentation?.of([entity], request)) ?? [];
    return shown ?? this.#entities.type.resource(entity);
  }

  async sendPage(
    request: FastifyRequest & { readonly query: PageQuery },
    reply: FastifyReply,
    organizationId: EntityId,
    filter: FilterOf<F>,
  ): Promise<FastifyReply> {
    const page = openPage(request, request.query, { ...filter, organizationId });
    if (this.#presentation === undefined) {
      const found = await this.#entities.page(organizationId, filter, page);
      return sendPage(
        reply,
        found.documents.map(({ json }) => json),
        page.meta(found),
      );
    }
    const found = await this.#entities.states(organizationId, filter, page);
    const items = await this.#presentation.of(found.states, request);
    return sendJson(reply, JSON.stringify({ items, meta: page.meta(found) }));
  }

  /**
   * Answers with the entity's events as server-sent events, which continue until the client leaves. For a route with
   * `querystring: z.object(eventStreamQuery)` and `response: eventStreamResponse`.
   *
   * @throws HttpError 404, 406, 429; ValidationFailure; `Fault` `store_unavailable`
   */
  async sendEvents(
    request: EventStreamRequest,
    reply: FastifyReply,
    organizationId: EntityId,
    id: EntityId,
  ): Promise<FastifyReply> {
    const { type, eventStreams, source } = this.#entities;
    if (eventStreams === undefined) throw new TypeError(`no event streams are open for ${type.category}`);
    const admit = async (): Promise<void> => {
      if ((await this.#entities.find(organizationId, id)) === null) throw notFound();
    };
    return eventStreams.send(request, reply, { source, of: { organizationId, id }, admit });
  }

  /** Decides a command on the entity that `id` in the path names, and answers with it. @throws as {@link accepted} */
  async sendUpdated(
    request: FastifyRequest & { readonly params: { readonly id: EntityId } },
    reply: FastifyReply,
    decide: (entity: EntityOf<State>) => Decision<E, R>,
  ): Promise<FastifyReply> {
    const result = await this.#entities.update(commandContext(request), request.params.id, decide);
    return this.sendResult(request, reply, result);
  }

  /**
   * Answers a command with the entity as it left it.
   *
   * @throws as {@link accepted}; `Fault` `outcome_unknown` where what is shown besides cannot be read
   */
  sendResult(
    request: FastifyRequest,
    reply: FastifyReply,
    result: EntityResult<EntityOf<State>, R | NotFound>,
  ): FastifyReply | Promise<FastifyReply> {
    if (this.#presentation !== undefined) {
      return this.shown(request, reply, result).then((shown) => sendJson(reply, JSON.stringify(shown)));
    }
    return sendJson(reply, this.#entities.type.json(this.accepted(request, reply, result)));
  }

  /** What {@link sendResult} answers, for replies that show more. @throws as it */
  async shown(
    request: FastifyRequest,
    reply: FastifyReply,
    result: EntityResult<EntityOf<State>, R | NotFound>,
  ): Promise<object> {
    const entity = this.accepted(request, reply, result);
    try {
      return await this.#show(request, entity);
    } catch (error) {
      throw faultAfterWrite(error);
    }
  }

  /**
   * Sets the position and the `ETag` of the reply to a command, for replies that show more than the entity.
   *
   * @throws HttpError 404, or the error of the rejection
   */
  accepted(
    request: FastifyRequest,
    reply: FastifyReply,
    result: EntityResult<EntityOf<State>, R | NotFound>,
  ): EntityOf<State> {
    if (!result.ok) throw this.#errorOf(result.rejection);
    const { entity, revision } = result;
    // A position opens only for its own organization; a caller that acts on another one reads what it wrote anyhow.
    if (entity.organizationId === request.principal.organizationId) {
      setPosition(request, reply, { stream: streamName(this.#entities.type.category, entity.id), revision });
    }
    void reply.header('etag', etagOf(entity.changedRevision));
    return entity;
  }

  #errorOf(rejection: R | NotFound): Error {
    const errors: Readonly<Record<string, (rejection: R) => Error>> = { not_found: notFound, ...this.#errors };
    const error = errors[rejection.reason];
    if (error === undefined) throw new TypeError(`no error is declared for ${rejection.reason}`);
    return error(rejection as R);
  }
}
