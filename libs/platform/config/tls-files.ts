/** Files of certificates and keys: their variables, and the TLS options that read them again. */
import { readFileSync } from 'node:fs';
import { createSecureContext, type ConnectionOptions } from 'node:tls';
import { z } from 'zod';
import { messageOf } from '#libs/kernel/faults.ts';
import { incompleteSet } from './variables.ts';

/** A PEM file, and its text at the start: the file may be replaced while Parley runs. */
export interface PemFile {
  readonly path: string;
  readonly pem: string;
}

/** Certificates to trust (null: those of Node), and the client's certificate and key (null: none). */
export interface TlsFiles {
  readonly ca: PemFile | null;
  readonly cert: PemFile | null;
  readonly key: PemFile | null;
}

/** Names of the three variables. */
export type TlsFileVariables<Name extends string = string> = Readonly<Record<keyof TlsFiles, Name>>;

/** A variable that names a PEM file. @param holds the label in the file, such as `CERTIFICATE` */
export function pemAt(holds: string) {
  return z.string().transform((path, context): PemFile => {
    try {
      const pem = readFileSync(path, 'utf8');
      if (pem.includes(`${holds}-----`)) return { path, pem };
      context.addIssue(`must name a PEM file with a ${holds}; ${JSON.stringify(path)} has none`);
    } catch (error) {
      context.addIssue(`cannot be read: ${messageOf(error)}`);
    }
    return z.NEVER;
  });
}

/** @param condition the value of another variable that the files need, such as `KAFKA_TLS=true`; null if it is met */
export function tlsFileProblems(
  { ca, cert, key }: TlsFileVariables,
  given: Readonly<Record<string, string>>,
  condition: string | null,
): string[] {
  const isSet = (name: string): boolean => given[name] !== undefined;
  const files = [ca, cert, key].filter(isSet);
  const problems: string[] = [];
  if (files.length > 0 && condition !== null) {
    problems.push(`${files.join(', ')} ${files.length === 1 ? 'needs' : 'need'} ${condition}`);
  }
  return [...problems, ...incompleteSet(given, [cert, key])];
}

/** @throws Error for files that do not match each other, which names their variables */
export function tlsFilesOf<Name extends string>(
  { ca, cert, key }: TlsFileVariables<Name>,
  values: Readonly<Partial<Record<Name, PemFile | undefined>>>,
): TlsFiles {
  const files = { ca: values[ca] ?? null, cert: values[cert] ?? null, key: values[key] ?? null };
  try {
    createSecureContext(pemsOf(files, ({ pem }) => pem));
  } catch (error) {
    const named = [ca, cert, key].filter((name) => values[name] !== undefined);
    throw new Error(`${named.join(', ')} cannot be used: ${messageOf(error)}`, {
      cause: error,
    });
  }
  return files;
}

type Pems = Pick<ConnectionOptions, 'ca' | 'cert' | 'key'>;

/**
 * TLS options whose members are read from the files each time: clients copy them for each connection, and files are
 * replaced while Parley runs. While files cannot be used, such as a key without its new certificate, the former ones are.
 *
 * @param store the name of the server, for the log
 */
export function tlsOptionsOf(
  files: TlsFiles,
  store: 'kafka' | 'redis',
  log: { warn(fields: object, message: string): void },
): Pems {
  let used = pemsOf(files, ({ pem }) => pem);
  const newest = (): Pems => {
    try {
      const pems = pemsOf(files, ({ path }) => readFileSync(path, 'utf8'));
      createSecureContext(pems);
      used = pems;
    } catch (error) {
      const reason = messageOf(error);
      log.warn({ reason }, `${store}: new certificate files cannot be used; the former ones are`);
    }
    return used;
  };
  return {
    get ca() {
      return newest().ca;
    },
    get cert() {
      return used.cert;
    },
    get key() {
      return used.key;
    },
  };
}

function pemsOf({ ca, cert, key }: TlsFiles, read: (file: PemFile) => string): Pems {
  return {
    ...(ca !== null && { ca: read(ca) }),
    ...(cert !== null && { cert: read(cert) }),
    ...(key !== null && { key: read(key) }),
  };
}
