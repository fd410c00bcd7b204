/** Commands that print what the API replies. */
import type { RestClient } from '#libs/client/src/index.ts';

import { type Api, dataOf, type Reply, withApi } from './api.ts';
import { type CliParts, type OutputOptions, printOne, printRows } from './command-context.ts';
import type { Row } from './output.ts';

interface PrintOptions<T> {
  /** The message for status 404. */
  readonly missing: string;
  /** The row to print. Default: the data as they are. */
  readonly rowOf?: (data: T) => Row;
  readonly needsOrganization?: boolean;
}

/** Calls the API, and prints the data of the reply. */
export async function printReply<T extends Row>(
  parts: CliParts,
  options: OutputOptions,
  { missing, rowOf = (data) => data, ...needs }: PrintOptions<T>,
  call: (rest: RestClient) => Reply<T>,
): Promise<void> {
  const work = async ({ rest }: Api) => printOne(parts, options, rowOf(await dataOf(call(rest), missing)));
  await withApi(parts, work, needs);
}

interface Page<T> {
  readonly items: readonly T[];
  readonly meta: { readonly next_cursor: string | null };
}

/** Calls the API for all pages of a list, and prints their items. */
export async function printList<T extends Row>(
  parts: CliParts,
  options: OutputOptions,
  { missing, rowOf = (data) => data, columns, ...needs }: PrintOptions<T> & { readonly columns: string[] },
  call: (rest: RestClient, page: { size: number; cursor?: string }) => Reply<Page<T>>,
): Promise<void> {
  const work = async ({ rest }: Api): Promise<void> => {
    const rows: Row[] = [];
    for (let cursor: string | null | undefined; cursor !== null;) {
      const page = await dataOf(call(rest, { size: 100, ...(cursor !== undefined && { cursor }) }), missing);
      rows.push(...page.items.map(rowOf));
      cursor = page.meta.next_cursor;
    }
    printRows(parts, options, rows, columns);
  };
  await withApi(parts, work, needs);
}
