import type { EntityId } from '#libs/kernel/ids.ts';
import { parseConfig } from '#libs/platform/config/index.ts';
import { CliError } from './errors.ts';
import { details, json, table, type Row } from './output.ts';
import type { Session, SessionOptions } from './session.ts';

/** Dependencies of the commands on their process. */
export interface CliParts {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Writes to standard output. */
  print(text: string): void;
  /**
   * Writes, and waits until the system has taken the text. @throws the error of a reader that has gone (EPIPE), or a
   * full disk
   */
  write(text: string): Promise<void>;
  /** Writes a line about the work, such as a problem, to standard error. */
  tell(line: string): void;
  /** Calls `listener` instead of ending the process at the first Ctrl-C or SIGTERM, until the returned function is called. */
  onInterrupt(listener: () => void): () => void;
  /** Standard error if it is a terminal, for progress bars. */
  readonly terminal: NodeJS.WriteStream | undefined;
  /** Standard output if it is a terminal, for colours. */
  readonly screen: NodeJS.WriteStream | undefined;
}

export interface OutputOptions {
  readonly json?: boolean;
}

/**
 * Runs `work` on a session, and closes the session. Only now, the code of the stores and features is loaded: commands that
 * call a server do without it.
 */
export async function withSession<T>(
  { environment }: CliParts,
  work: (session: Session) => Promise<T>,
  options?: SessionOptions,
): Promise<T> {
  const { openSession } = await import('./session.ts');
  const session = await openSession(parseConfig(environment), options);
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}

/** Runs `work` with a signal that an interrupt aborts. @param reason the message of its error */
export async function interruptible<T>(
  parts: CliParts,
  work: (signal: AbortSignal) => Promise<T>,
  reason = 'interrupted',
): Promise<T> {
  const stop = new AbortController();
  const endInterrupts = parts.onInterrupt(() => stop.abort(new Error(reason)));
  try {
    return await work(stop.signal);
  } finally {
    endInterrupts();
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

/**
 * The name of a new entity, which is either an argument or an option.
 *
 * @throws CliError if both are absent, or both are present and differ
 */
export function nameOf(argument: string | undefined, option: string | undefined, flag: string): string {
  if (argument !== undefined && option !== undefined && argument !== option) {
    throw new CliError(`two names are given, ${argument} and ${option}`);
  }
  const name = argument ?? option;
  if (name === undefined) throw new CliError(`a name is missing; give it with ${flag}`);
  return name;
}

/** Commands that act within one organization take the option. */
export interface OrganizationOptions extends OutputOptions {
  readonly organization?: string;
}

export const ORGANIZATION_OPTION = [
  '-o, --organization <id>',
  'organization; default: the first one, or that of PARLEY_KEY',
] as const;

export function organizationQuery({ organization }: OrganizationOptions): { organization_id?: EntityId } {
  return organization === undefined ? {} : { organization_id: organization };
}

export function inOrganization(id: EntityId, options: OrganizationOptions) {
  return { params: { path: { id }, query: organizationQuery(options) } };
}
