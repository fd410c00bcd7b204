import type { FastifyRequest } from 'fastify';
import { z } from 'zod';

import type { Rejection } from '#libs/kernel/decider.ts';
import type { DomainEvent } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import {
  eventStreamQuery,
  eventStreamResponse,
  type HttpApp,
  type MemberRoute,
  pageMetaSchema,
  pageQuery,
  type PageQuery,
  queryPointInHistory,
  routesTagged,
} from '#libs/platform/http/index.ts';
import type { HistoryPoint } from '#libs/platform/readmodel/index.ts';

import type { AnyState, EntityOf, Facets, FilterOf } from './entity.ts';
import type { EntityReplies } from './entity-replies.ts';

/** What the OpenAPI document says about a route. */
interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  /** Default: that of all reads. */
  readonly scope?: string;
  /** Default: closed to members. */
  readonly members?: MemberRoute;
}

/** A request for one entity, or for the list; `query` and `params` hold what the declaration names. */
export type ReadRequest<Q extends z.core.$ZodLooseShape = {}> = Pick<FastifyRequest, 'principal'> & {
  readonly params: { readonly id?: EntityId };
  readonly query: z.output<z.ZodObject<Q>>;
};

interface EntityReads<
  State extends AnyState,
  F extends Facets,
  Own extends z.core.$ZodLooseShape,
  Filters extends z.core.$ZodLooseShape,
> {
  readonly path: string;
  readonly tag: string;
  /** Scope that the reads require. Default: `read`. */
  readonly scope?: string;
  readonly params: z.ZodObject<{ id: z.ZodType<EntityId> }>;
  /** An entity as it is shown; the schema of a page is named after it. */
  readonly schema: z.ZodType;
  /** Parameters of all reads. */
  readonly query?: Own;
  /** The organization whose entities are read. Default: that of the caller. @throws HttpError */
  readonly organizationOf?: (request: ReadRequest<Own>) => Promise<EntityId>;
  readonly list?: Operation & {
    readonly filters?: Filters;
    readonly facets?: (filters: z.output<z.ZodObject<Filters>>) => FilterOf<F>;
  };
  readonly one: Operation & {
    /** Reads the past without the log. Default: {@link Entities.at}, queued with other reads of the past. */
    readonly past?: (
      organizationId: EntityId,
      id: EntityId,
      point: HistoryPoint,
    ) => Promise<NoInfer<EntityOf<State>> | null>;
  };
  readonly events?: Operation;
  /** Called before one entity, its past or its events are answered. @throws HttpError */
  readonly admit?: (organizationId: EntityId, id: EntityId) => Promise<unknown>;
}

const asOf = {
  as_of: queryPointInHistory({
    description: 'Reads the state after the event of this sequence (0: before the first one), or as of this time',
  }).optional(),
};

/**
 * Declares the routes that read the entities of one kind: a page of them, one as it is now or was at a point of its
 * history (`as_of`), and its events as server-sent events.
 */
export function declareReads<
  State extends AnyState,
  E extends DomainEvent,
  F extends Facets,
  R extends Rejection,
  Own extends z.core.$ZodLooseShape = {},
  Filters extends z.core.$ZodLooseShape = {},
>(app: HttpApp, replies: EntityReplies<State, E, F, R>, reads: EntityReads<State, F, Own, Filters>): void {
  const { path, params, schema, query: own, list, one, events } = reads;
  const options =
    ({ scope = reads.scope ?? 'read', operationId, summary, description, members }: Operation) =>
    <Schema extends object>(more: Schema) =>
      routesTagged(reads.tag).requiring(scope)(
        {
          operationId,
          summary,
          ...(description !== undefined && { description }),
          ...more,
        },
        members,
      );
  const organizationOf = async (request: Pick<FastifyRequest, 'principal' | 'params' | 'query'>) =>
    reads.organizationOf?.(request as ReadRequest<Own>) ?? request.principal.organizationId;
  const onePath = `${path}/:id`;

  if (list !== undefined) {
    const querystring = z.object({ ...pageQuery, ...list.filters, ...own });
    const response = { 200: pageOf(schema) };
    app.get(path, options(list)({ querystring, response }), async (request, reply) => {
      const query = request.query as PageQuery & z.output<z.ZodObject<Filters>>;
      const organizationId = await organizationOf(request);
      return replies.sendPage(Object.assign(request, { query }), reply, organizationId, list.facets?.(query) ?? {});
    });
  }

  const querystring = z.object({ ...own, ...asOf });
  app.get(onePath, options(one)({ params, querystring, response: { 200: schema } }), async (request, reply) => {
    const { as_of: point } = request.query as { readonly as_of?: HistoryPoint };
    const { id } = request.params;
    const organizationId = await organizationOf(request);
    await reads.admit?.(organizationId, id);
    if (point === undefined) return replies.sendOne(request, reply, organizationId, id);
    const { past } = one;
    const read = past && (() => past(organizationId, id, point));
    return replies.sendPast(request, reply, id, { organizationId, asOf: point, read });
  });

  if (events === undefined) return;
  const stream = { params, querystring: z.object(eventStreamQuery), response: eventStreamResponse };
  app.get(`${onePath}/events`, options(events)(stream), async (request, reply) => {
    const { id } = request.params;
    const organizationId = await organizationOf(request);
    await reads.admit?.(organizationId, id);
    return replies.sendEvents(request, reply, organizationId, id);
  });
}

function pageOf(schema: z.ZodType): z.ZodType {
  return z.object({ items: z.array(schema), meta: pageMetaSchema }).meta({ id: `${schema.meta()?.id}Page` });
}
