/** The variables for Kafka, their dependencies, and the configuration that results. */
import { z } from 'zod';
import { pemAt, tlsFileProblems, tlsFilesOf } from './tls-files.ts';
import { address, boolean, incompleteSet, integer, listOf, oneOf } from './variables.ts';

const MECHANISMS = ['plain', 'scram-sha-256', 'scram-sha-512'] as const;

/** Kafka limits the length of topic names; the limit leaves room for the rest of the name. */
const PREFIX = /^[a-zA-Z0-9._-]{1,200}$/;

export const kafkaVariables = {
  KAFKA_BROKERS: listOf(address())
    .prefault('')
    .describe('Kafka brokers to publish the log to, `host:port`, separated by commas; empty for none.'),
  KAFKA_TOPIC_PREFIX: z
    .string()
    .refine((value) => PREFIX.test(value), 'must be 1 to 200 letters, digits, dots, dashes and underscores')
    .prefault('parley')
    .describe('Prefix of the names of topics and consumer groups; unique for each Parley on a Kafka cluster.'),
  KAFKA_PUBLIC_EVENTS: boolean()
    .prefault('true')
    .describe('Whether events of channels are also published to the topic for other teams (docs/kafka.md).'),
  KAFKA_ACCEPT_LOST_EVENT: z
    .string()
    .optional()
    .describe('Id of the event that the relay names when it refuses another log: publishes this log from its start.'),
  KAFKA_SESSION_TIMEOUT_MS: integer(2_000, 1_800_000)
    .prefault('6000')
    .describe('Silence after which a relay or projector is replaced, in milliseconds; brokers limit it.'),
  KAFKA_TLS: boolean().prefault('false').describe('Whether connections to the brokers use TLS.'),
  KAFKA_TLS_CA_FILE: pemAt('CERTIFICATE')
    .optional()
    .describe('CA certificates (PEM) to verify the brokers with. Default: those of Node.'),
  KAFKA_TLS_CERT_FILE: pemAt('CERTIFICATE')
    .optional()
    .describe('Client certificate (PEM) for the brokers; with `KAFKA_TLS_KEY_FILE`.'),
  KAFKA_TLS_KEY_FILE: pemAt('PRIVATE KEY').optional().describe('Private key (PEM) of `KAFKA_TLS_CERT_FILE`.'),
  KAFKA_SASL_MECHANISM: oneOf(MECHANISMS)
    .optional()
    .describe(`SASL mechanism: ${MECHANISMS.join(', ')}. Default: no authentication.`),
  KAFKA_SASL_USERNAME: z.string().optional().describe('User name; with `KAFKA_SASL_MECHANISM`.'),
  KAFKA_SASL_PASSWORD: z
    .string()
    .optional()
    .meta({ description: 'Password; with `KAFKA_SASL_MECHANISM`.', secret: true }),
};

export interface KafkaSasl {
  readonly mechanism: (typeof MECHANISMS)[number];
  readonly username: string;
  readonly password: string;
}

const TLS_FILES = { ca: 'KAFKA_TLS_CA_FILE', cert: 'KAFKA_TLS_CERT_FILE', key: 'KAFKA_TLS_KEY_FILE' } as const;
const SASL = ['KAFKA_SASL_MECHANISM', 'KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD'] as const;

/** Variables that other variables require. @param given the variables that are set, valid or not */
export function kafkaProblems(given: Readonly<Record<string, string>>): string[] {
  const problems: string[] = [];
  const isSet = (name: string): boolean => given[name] !== undefined;
  if (isSet('KAFKA_BROKERS') && !isSet('PARLEY_TOKEN_SECRET')) {
    // The readers of the messages are other processes, with data folders of their own.
    problems.push('KAFKA_BROKERS needs PARLEY_TOKEN_SECRET as well, which signs what is sent to them');
  }
  problems.push(...tlsFileProblems(TLS_FILES, given, given['KAFKA_TLS'] === 'true' ? null : 'KAFKA_TLS=true'));
  problems.push(...incompleteSet(given, SASL));
  return problems;
}

type KafkaValues = z.infer<z.ZodObject<typeof kafkaVariables>>;

export type KafkaConfig = Readonly<ReturnType<typeof kafkaConfigOf>>;

/** Converts valid variables. No brokers: no Kafka. @throws Error for TLS files that do not match each other */
export function kafkaConfigOf(values: KafkaValues) {
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_SASL_USERNAME: username, KAFKA_SASL_PASSWORD: password } = values;
  return {
    kafkaBrokers: values.KAFKA_BROKERS,
    kafkaTopicPrefix: values.KAFKA_TOPIC_PREFIX,
    kafkaPublicEvents: values.KAFKA_PUBLIC_EVENTS,
    kafkaAcceptLostEvent: values.KAFKA_ACCEPT_LOST_EVENT ?? null,
    kafkaSessionTimeoutMs: values.KAFKA_SESSION_TIMEOUT_MS,
    kafkaTls: values.KAFKA_TLS ? tlsFilesOf(TLS_FILES, values) : null,
    kafkaSasl:
      mechanism === undefined || username === undefined || password === undefined
        ? null
        : { mechanism, username, password },
  };
}
