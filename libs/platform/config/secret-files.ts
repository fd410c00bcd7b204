/**
 * Secrets from files, as Docker and Kubernetes mount them: `NAME_FILE` names the file of the variable `NAME`. The content
 * counts as the variable's value, without blanks and line breaks around it.
 */
import { readFileSync, statSync } from 'node:fs';
import { messageOf } from '#libs/kernel/faults.ts';

/** Of the environment, such as `process.env`. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** The largest secret is a list of headers. */
const MAX_BYTES = 65_536;

/** The value of one variable, or what is wrong with its file; neither if the variable is not set. */
export interface Given {
  readonly value?: string;
  /** Starts with the name of the variable. */
  readonly problem?: string;
  readonly isFromFile?: true;
}

/** @param name of a variable that may come from a file */
export function givenOrInFile(variables: Variables, name: string): Given {
  const [value, path] = [valueOf(variables[name]), valueOf(variables[`${name}_FILE`])];
  if (path === undefined) return value === undefined ? {} : { value };
  const file = `${name}_FILE`;
  if (value !== undefined) return { value, problem: `${name} and ${file} are both set; leave one of them out` };
  try {
    // Another reader would find a pipe empty, and a device may have no end.
    const { size } = regularFile(path);
    if (size > MAX_BYTES) throw new Error(`${path} is larger than ${MAX_BYTES / 1024} KiB`);
    const text = valueOf(new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path)));
    if (text === undefined) throw new Error(`${path} is empty`);
    return { value: text, isFromFile: true };
  } catch (error) {
    const why = error instanceof TypeError ? `${path} is not text in UTF-8` : messageOf(error);
    return { problem: `${file} cannot be used: ${why}`, isFromFile: true };
  }
}

/** An empty variable (`PORT=`) means the default, as in a shell's `${PORT:-…}`. */
export function valueOf(text: string | undefined): string | undefined {
  const value = text?.trim();
  return value === '' ? undefined : value;
}

function regularFile(path: string) {
  const status = statSync(path);
  if (status.isFile()) return status;
  throw new Error(`${path} is no regular file`);
}
