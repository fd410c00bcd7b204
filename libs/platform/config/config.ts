/**
 * The schema of all environment variables. `main.ts` parses it once, before anything starts; no other file reads
 * `process.env`.
 */
import { z } from 'zod';
import { messageOf } from '#libs/kernel/faults.ts';
import { conceal } from '#libs/kernel/secrets.ts';

import { eventStoreUrl } from './event-store-url.ts';
import { kafkaConfigOf, kafkaProblems, kafkaVariables } from './kafka.ts';
import { mediaS3Of, mediaS3Problems, mediaS3Variables } from './media-s3.ts';
import {
  modelConfigOf,
  modelProblems,
  modelVariables,
  embeddingConfigOf,
  embeddingProblems,
  embeddingVariables,
} from './model.ts';
import { DEFAULT_NODE_FLAGS } from './memory.ts';
import { featureLimitsOf, featureLimitVariables } from './feature-limits.ts';
import { givenOrInFile, valueOf, type Variables } from './secret-files.ts';
import { tracingConfigOf, tracingVariables } from './tracing.ts';
import { redisConfigOf, redisProblems, redisVariables } from './redis.ts';
import { boolean, integer, listOf, network, oneOf, origin, publicUrl, allowedHost } from './variables.ts';

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/** In the order of the documentation. `prefault` is the default as an operator would write it. */
export const environment = z.object({
  PORT: integer(0, 65_535).prefault('8080').describe('Port of the HTTP API; 0 selects a free one.'),
  HOST: z.string().prefault('127.0.0.1').describe('Address to listen on; `0.0.0.0` for all interfaces.'),
  DATA_DIR: z.string().prefault('./data').describe('Folder of the embedded stores; one running Parley per folder.'),
  PARLEY_BOOTSTRAP_KEY: z
    .string()
    .optional()
    .meta({ description: 'Installs this API key for the first organization instead of a random one.', secret: true }),
  PARLEY_TOKEN_SECRET: z
    .string()
    .refine((value) => value.length >= 16, 'needs at least 16 characters')
    .optional()
    .meta({
      description:
        'Signs cursors, positions and messages; the same for all processes of one Parley. Default: derived from the data folder.',
      secret: true,
    }),
  EVENTSTORE_URL: eventStoreUrl().optional().meta({
    description: 'EventStoreDB, `esdb://…` or `kurrentdb://…`. Default: an embedded event store in `DATA_DIR`.',
    mayHoldPassword: true,
  }),
  ...redisVariables,
  ...kafkaVariables,
  ...mediaS3Variables,
  PROJECTOR_FEED: oneOf(['kafka', 'log'])
    .prefault('kafka')
    .describe(
      'What projectors follow: `kafka` divides the partitions among them if there are brokers; with `log`, each follows the whole log.',
    ),
  ROLES: listOf(z.string()).prefault('').describe('Roles to run, separated by commas; empty for all of them.'),
  LOG_LEVEL: oneOf(LOG_LEVELS)
    .prefault('info')
    .describe(`Least severe log lines to write: ${LOG_LEVELS.join(', ')}.`),
  CORS_ORIGINS: listOf(origin())
    .prefault('')
    .describe('Origins whose web pages may call the API, separated by commas; empty for none.'),
  REALTIME_ORIGINS: listOf(origin())
    .optional()
    .describe('Origins whose web pages may open websockets, separated by commas. Default: `CORS_ORIGINS`.'),
  PUBLIC_URL: publicUrl()
    .optional()
    .describe(
      'Address of the API for its clients, with the path prefix if there is one: `https://example.com/parley`. Default: that of each request.',
    ),
  ACCESS_LOG: boolean().prefault('false').describe('Whether each answered request gets a line in the log.'),
  TRUST_PROXY: listOf(network())
    .prefault('')
    .describe('Addresses or networks of proxies whose `X-Forwarded-…` headers are used, separated by commas.'),
  FETCH_ALLOW_HOSTS: listOf(allowedHost())
    .prefault('')
    .describe(
      'Hosts, `host` or `host:port`, that Parley may fetch although their addresses are private, separated by commas.',
    ),
  ...embeddingVariables,
  ...modelVariables,
  ...tracingVariables,
  ...featureLimitVariables,
  RATE_LIMIT_PER_KEY: integer(0, 100_000_000)
    .prefault('60000')
    .describe('Requests per minute for one API key; 0 for no limit.'),
  RATE_LIMIT_PER_ADDRESS: integer(0, 100_000_000)
    .prefault('120000')
    .describe('Requests per minute from one address, counted before authentication; 0 for no limit.'),
  REQUEST_TIMEOUT_MS: integer(100, 600_000)
    .prefault('15000')
    .describe('Milliseconds within which a request must arrive completely; of uploads of media, the longest pause.'),
  STOP_TIMEOUT_MS: integer(100, 600_000)
    .prefault('10000')
    .describe('Milliseconds that each part has to finish its work when Parley stops; all together have 30 seconds.'),
  STOP_DELAY_MS: integer(0, 120_000)
    .prefault('0')
    .describe('Milliseconds to continue serving after a stop signal, while `/health/ready` already answers 503.'),
  // The set-up reads it before this schema exists; it is here for the documentation.
  PARLEY_NODE_FLAGS: z
    .string()
    .prefault(DEFAULT_NODE_FLAGS)
    .describe(
      'Node flags of the process that `npm start` or `npx parley <role>` starts; within less than 2 GiB, others that fit.',
    ),
  PARLEY_REVISION: z
    .string()
    .prefault('unknown')
    .describe('Revision of the source, for the metric `parley_build_info`; the image sets it.'),
  PARLEY_COMMAND: z
    .string()
    .prefault('npx parley')
    .describe('How the first lines of a start name the command `parley`; the image sets it.'),
});

export type VariableName = keyof typeof environment.shape;

/** Variables that a role requires. */
export interface Needs {
  /** For the message: `the role relay`. */
  readonly by: string;
  readonly variables: readonly VariableName[];
}

/** All problems of the environment: one line each, with the variable. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

/**
 * @param variables usually `process.env`; an empty variable counts as unset
 * @throws ConfigError
 */
export function parseConfig(variables: Variables, needs?: Needs): Config {
  const { given, problems: ofFiles } = setVariables(variables);
  conceal(secretsIn(given));
  const parsed = environment.safeParse(given);
  const apart = parsed.success ? [] : problemsOf(parsed.error);
  const problems = [
    ...apart,
    ...ofFiles,
    ...missingOf(given, needs),
    ...redisProblems(given),
    ...kafkaProblems(given),
    ...mediaS3Problems(given),
    ...embeddingProblems(given),
    ...modelProblems(given),
  ];
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems);
  return orConfigError(() => configOf(parsed.data));
}

/** The parsed configuration; see the descriptions of the variables. */
export type Config = Readonly<ReturnType<typeof configOf>>;

function configOf(values: z.output<typeof environment>) {
  return {
    port: values.PORT,
    host: values.HOST,
    dataDir: values.DATA_DIR,
    bootstrapKey: values.PARLEY_BOOTSTRAP_KEY,
    tokenSecret: values.PARLEY_TOKEN_SECRET,
    eventstoreUrl: values.EVENTSTORE_URL,
    ...redisConfigOf(values),
    ...kafkaConfigOf(values),
    mediaS3: mediaS3Of(values),
    projectorFeed: values.PROJECTOR_FEED,
    roles: values.ROLES,
    logLevel: values.LOG_LEVEL,
    corsOrigins: values.CORS_ORIGINS,
    realtimeOrigins: values.REALTIME_ORIGINS ?? values.CORS_ORIGINS,
    publicUrl: values.PUBLIC_URL,
    accessLog: values.ACCESS_LOG,
    trustedProxies: values.TRUST_PROXY,
    fetchAllowHosts: values.FETCH_ALLOW_HOSTS,
    embedding: embeddingConfigOf(values),
    ...modelConfigOf(values),
    tracing: tracingConfigOf(values),
    ...featureLimitsOf(values),
    rateLimitPerKey: values.RATE_LIMIT_PER_KEY,
    rateLimitPerAddress: values.RATE_LIMIT_PER_ADDRESS,
    requestTimeoutMs: values.REQUEST_TIMEOUT_MS,
    stopTimeoutMs: values.STOP_TIMEOUT_MS,
    stopDelayMs: values.STOP_DELAY_MS,
    revision: values.PARLEY_REVISION,
    command: values.PARLEY_COMMAND,
  };
}

/** The first problem of each variable, in the order of the list. */
function problemsOf({ issues }: z.ZodError): string[] {
  const byVariable = new Map(issues.toReversed().map((issue) => [String(issue.path[0]), issue.message]));
  return [...byVariable].toReversed().map(([name, message]) => `${name} ${message}`);
}

function orConfigError<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new ConfigError([messageOf(error)]);
  }
}

function missingOf(given: Variables, needs: Needs | undefined): readonly string[] {
  const missing = (needs?.variables ?? []).filter((name) => given[name] === undefined);
  return missing.map((name) => `${name} is missing; ${needs?.by} needs it`);
}

/** Values of secret variables, of each header of a list of headers, and passwords in addresses. */
export function secretsIn(given: Readonly<Record<string, string>>): string[] {
  return Object.entries(given).flatMap(([name, value]) => {
    if (environment.shape[name as VariableName].meta()?.['secret'] !== true) return passwordsIn(value);
    const headers = [...value.matchAll(/=([^,]*)/g)].map(([, header = '']) => header.trim());
    return name === 'OTEL_EXPORTER_OTLP_HEADERS'
      ? [value, ...headers.flatMap((header) => [header, decoded(header)])]
      : [value];
  });
}

/** Passwords in addresses, `protocol://user:password@host`, as they are written and as they are meant. */
export function passwordsIn(value: string): string[] {
  const found = [...value.matchAll(/:\/\/[^\s/:@]*:([^\s/,]*)@/g)].map(([, password = '']) => password);
  return found.flatMap((password) => [password, decoded(password)]);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Whether the file that `NAME_FILE` names may hold the variable: secrets, and addresses that may hold a password. */
export function canBeInFile(name: string): boolean {
  const meta = environment.shape[name as VariableName].meta();
  return meta?.['secret'] === true || meta?.['mayHoldPassword'] === true;
}

interface SetVariables {
  readonly given: Record<string, string>;
  /** Names of the variables that a file holds, or should hold. */
  readonly fromFiles: ReadonlySet<string>;
  /** Problems with the files, one line each. */
  readonly problems: readonly string[];
}

/** The known variables that are set, in the environment or in files. */
export function setVariables(variables: Variables): SetVariables {
  const given: Record<string, string> = {};
  const fromFiles = new Set<string>();
  const problems: string[] = [];
  for (const name of Object.keys(environment.shape)) {
    const found = canBeInFile(name) ? givenOrInFile(variables, name) : { value: valueOf(variables[name]) };
    if (found.value !== undefined) given[name] = found.value;
    if ('isFromFile' in found) fromFiles.add(name);
    if ('problem' in found && found.problem !== undefined) problems.push(found.problem);
  }
  return { given, fromFiles, problems };
}

/** A secret of the command line, which is no variable of the configuration. @throws ConfigError for its file */
export function secretOf(variables: Variables, name: string): string | undefined {
  const { value, problem } = givenOrInFile(variables, name);
  if (problem !== undefined) throw new ConfigError([problem]);
  return value;
}
