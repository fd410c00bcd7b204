import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { canonicalJson } from './signed-token.ts';
import { invalid } from './errors.ts';
import { queryInteger, text } from './validation/schemas.ts';

/** The paging parameters of list routes, to spread into their query schema. */
export const pageQuery = {
  size: queryInteger({ min: 1, max: 100, default: 50, description: 'Items on a page' }),
  page: queryInteger({
    min: 1,
    max: 1_000_000_000,
    description: 'Number of the page',
  })
    .optional()
    .meta({ default: 1 }),
  cursor: text({
    max: 2048,
    description: '`meta.next_cursor` of the page before; not together with `page`',
  }).optional(),
};

/** `meta` of every list answer (section 2.10 of the contract). */
export const pageMetaSchema = z
  .object({
    total: z.int().min(0),
    has_next: z.boolean(),
    has_previous: z.boolean(),
    page: z.int().min(1),
    next_cursor: z.string().nullable(),
  })
  .meta({ id: 'PageMeta' });
export type PageMeta = z.infer<typeof pageMetaSchema>;

/** The paging parameters of a request, parsed. */
export type PageQuery = z.output<z.ZodObject<typeof pageQuery>>;

/** A page to read: `size` items after the sort key `after` of a cursor, or from `offset`. */
export interface PageRequest {
  readonly size: number;
  readonly page: number;
  /** Sort key (in the feature's format) of the last item of the previous page; `null` without a cursor. */
  readonly after: string | null;
  /** Items to skip from the start; 0 with a cursor. */
  readonly offset: number;
  /**
   * `meta` of a page. `last` is the sort key of its last item: the order must be total (a time alone is not), so that
   * rows added meanwhile do not shift the next page.
   */
  meta(read: { total: number; hasNext: boolean; last: string | null }): PageMeta;
}

const cursorPayload = z.tuple([z.int().min(2), z.string()]);

/**
 * Parses the requested page. A cursor is bound to the organization, the route and the filter: `filter` contains the
 * parsed filter parameters, with deprecated names merged.
 * @throws ValidationFailure 422 for a forged cursor, one of another list, or a cursor together with a page
 */
export function openPage(request: FastifyRequest, query: PageQuery, filter: Record<string, unknown>): PageRequest {
  const { tokens } = request.server;
  const context = ['cursor', request.principal.organizationId, request.routeOptions.url ?? '', canonicalJson(filter)];
  let page = query.page ?? 1;
  let after: string | null = null;
  if (query.cursor !== undefined) {
    if (query.page !== undefined) throw invalid(['query', 'page'], 'either page or cursor is allowed', query.page);
    const opened = cursorPayload.safeParse(tokens.open(context, query.cursor));
    if (!opened.success) throw invalid(['query', 'cursor'], 'not a cursor of this list', query.cursor);
    [page, after] = opened.data;
  }
  return {
    size: query.size,
    page,
    after,
    offset: after === null ? (page - 1) * query.size : 0,
    meta: ({ total, hasNext, last }) => ({
      total,
      has_next: hasNext,
      has_previous: page > 1,
      page,
      next_cursor: hasNext && last !== null ? tokens.seal(context, [page + 1, last]) : null,
    }),
  };
}
