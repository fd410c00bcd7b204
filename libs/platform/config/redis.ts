/** The variables for Redis, their dependencies, and the configuration that results. */
import type { z } from 'zod';
import { pemAt, tlsFileProblems, tlsFilesOf } from './tls-files.ts';
import { redisUrls } from './variables.ts';

const TLS_FILES = { ca: 'REDIS_TLS_CA_FILE', cert: 'REDIS_TLS_CERT_FILE', key: 'REDIS_TLS_KEY_FILE' } as const;

export const redisVariables = {
  REDIS_URL: redisUrls().optional().meta({
    description:
      'Redis 7 or newer, `redis://…`, or `rediss://…` for TLS; several addresses, separated by commas, are nodes of one cluster. Default: a private Redis in `DATA_DIR`.',
    mayHoldPassword: true,
  }),
  REDIS_TLS_CA_FILE: pemAt('CERTIFICATE')
    .optional()
    .describe('CA certificates (PEM) to verify Redis with, for `rediss://…`. Default: those of Node.'),
  REDIS_TLS_CERT_FILE: pemAt('CERTIFICATE')
    .optional()
    .describe('Client certificate (PEM) for Redis; with `REDIS_TLS_KEY_FILE`.'),
  REDIS_TLS_KEY_FILE: pemAt('PRIVATE KEY').optional().describe('Private key (PEM) of `REDIS_TLS_CERT_FILE`.'),
};

/** Variables that other variables require. @param given the variables that are set, valid or not */
export function redisProblems(given: Readonly<Record<string, string>>): string[] {
  const isTls = given['REDIS_URL']?.trimStart().startsWith('rediss:') === true;
  return tlsFileProblems(TLS_FILES, given, isTls ? null : 'a REDIS_URL that begins with rediss://');
}

/** Converts valid variables. @throws Error for TLS files that do not match each other */
export function redisConfigOf(values: z.infer<z.ZodObject<typeof redisVariables>>) {
  return { redisUrl: values.REDIS_URL, redisTls: tlsFilesOf(TLS_FILES, values) };
}
