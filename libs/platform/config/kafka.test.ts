import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeCertificateAuthority } from '#test/support/kafka/certificates.ts';
import { ConfigError, parseConfig } from './config.ts';
import type { Variables } from './secret-files.ts';
import { describeConfig } from './describe-config.ts';

const KAFKA = { KAFKA_BROKERS: 'a:9092', PARLEY_TOKEN_SECRET: 'x'.repeat(16) };
const SASL = { KAFKA_SASL_MECHANISM: 'scram-sha-512', KAFKA_SASL_USERNAME: 'me', KAFKA_SASL_PASSWORD: 'hunter2' };

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'parley-test-kafka-config-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function fileOf(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

describe('configuration of Kafka', () => {
  it('takes certificates, a mechanism and a prefix', async () => {
    const authority = makeCertificateAuthority('tests');
    const { cert, key } = authority.issue('parley');
    const config = parseConfig({
      ...KAFKA,
      ...SASL,
      KAFKA_TOPIC_PREFIX: 'chat.v2_a-b',
      KAFKA_PUBLIC_EVENTS: 'false',
      KAFKA_TLS: 'true',
      KAFKA_TLS_CA_FILE: await fileOf('ca.pem', authority.cert),
      KAFKA_TLS_CERT_FILE: await fileOf('cert.pem', cert),
      KAFKA_TLS_KEY_FILE: await fileOf('key.pem', key),
    });
    expect(config).toMatchObject({
      kafkaTopicPrefix: 'chat.v2_a-b',
      kafkaPublicEvents: false,
      kafkaTls: { ca: { pem: authority.cert }, cert: { pem: cert }, key: { pem: key, path: join(folder, 'key.pem') } },
      kafkaSasl: { mechanism: 'scram-sha-512', username: 'me', password: 'hunter2' },
    });
    expect(parseConfig({ ...KAFKA, KAFKA_TLS: 'true' }).kafkaTls).toEqual({ ca: null, cert: null, key: null });
  });

  it('names all that is wrong at once', async () => {
    const missing = join(folder, 'nowhere.pem');
    const empty = await fileOf('empty.pem', 'no certificate\n');
    const problems = problemsOf({
      KAFKA_BROKERS: 'localhost',
      KAFKA_TOPIC_PREFIX: 'with blanks',
      KAFKA_PUBLIC_EVENTS: 'yes',
      KAFKA_TLS_CA_FILE: missing,
      KAFKA_TLS_CERT_FILE: empty,
      KAFKA_SASL_MECHANISM: 'oauth',
      KAFKA_SASL_USERNAME: 'me',
    });
    expect(problems).toEqual([
      'KAFKA_BROKERS must hold addresses like broker-1:9092; "localhost" is none',
      'KAFKA_TOPIC_PREFIX must be 1 to 200 letters, digits, dots, dashes and underscores',
      'KAFKA_PUBLIC_EVENTS must be one of true, false; it is "yes"',
      `KAFKA_TLS_CA_FILE cannot be read: ENOENT: no such file or directory, open '${missing}'`,
      `KAFKA_TLS_CERT_FILE must name a PEM file with a CERTIFICATE; "${empty}" has none`,
      'KAFKA_SASL_MECHANISM must be one of plain, scram-sha-256, scram-sha-512; it is "oauth"',
      'KAFKA_BROKERS needs PARLEY_TOKEN_SECRET as well, which signs what is sent to them',
      'KAFKA_TLS_CA_FILE, KAFKA_TLS_CERT_FILE need KAFKA_TLS=true',
      'KAFKA_TLS_CERT_FILE needs KAFKA_TLS_KEY_FILE as well',
      'KAFKA_SASL_MECHANISM, KAFKA_SASL_USERNAME need KAFKA_SASL_PASSWORD as well',
    ]);
  });

  it('wants a user and a password beside a mechanism, and a mechanism beside them', () => {
    expect(problemsOf({ ...KAFKA, KAFKA_SASL_MECHANISM: 'plain' })).toEqual([
      'KAFKA_SASL_MECHANISM needs KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD as well',
    ]);
    expect(problemsOf({ ...KAFKA, KAFKA_SASL_PASSWORD: 'hunter2' })).toEqual([
      'KAFKA_SASL_PASSWORD needs KAFKA_SASL_MECHANISM and KAFKA_SASL_USERNAME as well',
    ]);
  });

  it('refuses a key that is not that of the certificate', async () => {
    const authority = makeCertificateAuthority('tests');
    const problems = problemsOf({
      ...KAFKA,
      KAFKA_TLS: 'true',
      KAFKA_TLS_CERT_FILE: await fileOf('one.pem', authority.issue('one').cert),
      KAFKA_TLS_KEY_FILE: await fileOf('other.key', authority.issue('other').key),
    });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(/^KAFKA_TLS_CERT_FILE, KAFKA_TLS_KEY_FILE cannot be used: .*mismatch/);
  });

  it('shows no password', () => {
    const described = describeConfig({ ...KAFKA, ...SASL });
    expect(JSON.stringify(described)).not.toContain('hunter2');
    expect(described.find(({ name }) => name === 'KAFKA_SASL_PASSWORD')?.value).toBe('********');
    expect(described.find(({ name }) => name === 'KAFKA_SASL_USERNAME')?.value).toBe('me');
  });
});

function problemsOf(variables: Variables): readonly string[] {
  try {
    parseConfig(variables);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}
