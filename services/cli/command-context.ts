import type { z } from 'zod';
import { systemClock } from '#libs/kernel/clock.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import type { ListPage } from '#libs/platform/readmodel/index.ts';
import type { DescribedVariable } from '#libs/platform/config/index.ts';
import { CliError } from './errors.ts';
import { details, json, table } from './output.ts';
import type { Row } from './output.ts';
import type { Session, SessionOptions } from './session.ts';

/** What the commands are given by the process that they run in. */
export interface CliParts {
  readonly environment: Readonly<Record<string, string | undefined>>;
  openSession(options?: SessionOptions): Promise<Session>;
  /** Writes to standard output, as it is. */
  print(text: string): void;
  /** Where progress is shown; absent when nobody is looking. */
  readonly terminal: NodeJS.WriteStream | undefined;
  /** Standard output, if somebody looks at it: then colours help. */
  readonly screen: NodeJS.WriteStream | undefined;
}

/** Every command takes it. */
export interface OutputOptions {
  readonly json?: boolean;
}

/** Runs `work` on a session that is closed afterwards, whatever happens. */
export async function withSession<T>(
  parts: CliParts,
  work: (session: Session) => Promise<T>,
  options?: SessionOptions,
): Promise<T> {
  const session = await parts.openSession(options);
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}

export function printRows(
  parts: CliParts,
  options: OutputOptions,
  rows: readonly Row[],
  columns: readonly string[],
): void {
  parts.print(options.json === true ? json(rows) : table(rows, columns));
}

export function printOne(parts: CliParts, options: OutputOptions, row: Row): void {
  parts.print(options.json === true ? json(row) : details(row));
}

export function printVariables(parts: CliParts, options: OutputOptions, variables: readonly DescribedVariable[]): void {
  const rows = variables.map(({ name, value, source, description }) => ({ name, value, source, description }));
  printRows(parts, options, rows, ['name', 'value', 'source', 'description']);
}

/** The operator acts for the organization, without a key: who has the machine has everything. */
export function operatorContext(organizationId: EntityId): CommandContext {
  return { commandId: newId(), organizationId, actor: { type: 'system', id: 'cli' }, at: systemClock.now() };
}

/**
 * The name of what is to be created, which may be given as an argument or as an option.
 *
 * @throws CliError when it is given neither way, or both ways with different values
 */
export function nameOf(argument: string | undefined, option: string | undefined, flag: string): string {
  if (argument !== undefined && option !== undefined && argument !== option) {
    throw new CliError(`two names are given, ${argument} and ${option}`);
  }
  const name = argument ?? option;
  if (name === undefined) throw new CliError(`a name is missing; give it with ${flag}`);
  return name;
}

/**
 * Checks what was typed by the very schema that the API checks requests with.
 *
 * @throws CliError that names the first thing that is wrong
 */
export function checked<T>(schema: z.ZodType<T>, input: unknown): T {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new CliError(`${issue?.path.join('.') || 'input'}: ${issue?.message ?? 'is invalid'}`);
}

/** All pages of a list, one after the other. */
export async function allPages<T>(
  read: (
    page: ListPage,
  ) => Promise<{ readonly items: readonly T[]; readonly hasNext: boolean; readonly last: string | null }>,
): Promise<T[]> {
  const items: T[] = [];
  let after: string | null = null;
  for (;;) {
    const page: Awaited<ReturnType<typeof read>> = await read({ size: 100, offset: 0, after });
    items.push(...page.items);
    if (!page.hasNext || page.last === null) return items;
    after = page.last;
  }
}

/** A document of the read model as a row. */
export function rowOf(document: { readonly json: Buffer }): Row {
  const value: unknown = JSON.parse(document.json.toString());
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
