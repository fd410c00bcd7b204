import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';

import { redacted } from '#libs/kernel/secrets.ts';
import { ConfigError, environment, parseConfig } from './config.ts';
import { describeConfig } from './describe-config.ts';
import type { Variables } from './secret-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'parley-test-secrets-'));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, content: string | Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

function problemsOf(variables: Variables): readonly string[] {
  try {
    parseConfig(variables);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

/** Every variable whose value a log must not show. */
const SECRETS = Object.entries(environment.shape).flatMap(([name, schema]) =>
  schema.meta()?.['secret'] === true ? [name] : [],
);

it('takes every secret, and addresses with passwords, from files', () => {
  expect(SECRETS.length).toBeGreaterThan(6);
  const described = describeConfig({});
  for (const name of [...SECRETS, 'EVENTSTORE_URL', 'REDIS_URL']) {
    expect(described.find((variable) => variable.name === name)).toMatchObject({ canBeInFile: true });
  }
  const config = parseConfig({
    PARLEY_BOOTSTRAP_KEY_FILE: file('key', 'key-of-a-file_0123456789-0123456789-0123456789\n'),
    PARLEY_TOKEN_SECRET_FILE: file('token', '\u{feff}sixteen characters\r\n\r\n'),
    REDIS_URL_FILE: file('redis', 'redis://:hunter2-of-a-file@cache\n'),
    EVENTSTORE_URL_FILE: file('eventstore', 'esdb://db:2113?tls=false'),
    KAFKA_BROKERS: 'a:1',
    KAFKA_SASL_MECHANISM: 'plain',
    KAFKA_SASL_USERNAME: 'me',
    KAFKA_SASL_PASSWORD_FILE: file('sasl', 'two\nlines\n'),
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector',
    OTEL_EXPORTER_OTLP_HEADERS_FILE: file('headers', 'a=1,b=2\n'),
    // An empty variable counts as unset.
    MODEL_API_KEY_FILE: ' ',
  });
  expect(config).toMatchObject({
    bootstrapKey: 'key-of-a-file_0123456789-0123456789-0123456789',
    tokenSecret: 'sixteen characters',
    redisUrl: 'redis://:hunter2-of-a-file@cache',
    eventstoreUrl: 'esdb://db:2113?tls=false',
    kafkaSasl: { password: 'two\nlines' },
    tracing: { headers: { a: '1', b: '2' } },
    model: null,
  });
  expect(redacted('hunter2-of-a-file')).toBe('[redacted]');
});

it('refuses a secret that is set twice, and files that cannot hold one, by name', () => {
  const key = file('twice', 'secret-in-a-file');
  expect(problemsOf({ PARLEY_TOKEN_SECRET: 'secret-outside-of-it', PARLEY_TOKEN_SECRET_FILE: key })).toEqual([
    'PARLEY_TOKEN_SECRET and PARLEY_TOKEN_SECRET_FILE are both set; leave one of them out',
  ]);
  mkdirSync(join(folder, 'folder'));
  const missing = join(folder, 'missing');
  expect(problemsOf({ REDIS_URL_FILE: missing })).toEqual([
    expect.stringMatching(/^REDIS_URL_FILE cannot .*ENOENT.*missing/),
  ]);
  const refused: readonly [string, string][] = [
    [join(folder, 'folder'), 'is no regular file'],
    ['/dev/zero', 'is no regular file'],
    [file('empty', ' \n'), 'is empty'],
    [file('binary', Buffer.from([0xff, 0xfe, 0x41])), 'is not text in UTF-8'],
    [file('large', 'x'.repeat(70_000)), 'is larger than 64 KiB'],
  ];
  for (const [path, why] of refused) {
    expect(problemsOf({ PARLEY_BOOTSTRAP_KEY_FILE: path })).toEqual([
      `PARLEY_BOOTSTRAP_KEY_FILE cannot be used: ${path} ${why}`,
    ]);
  }
  // A problem of the content names the variable, and does not repeat the secret.
  expect(problemsOf({ PARLEY_TOKEN_SECRET_FILE: file('short', 'short') })).toEqual([
    'PARLEY_TOKEN_SECRET needs at least 16 characters',
  ]);
});

it('requirements of other variables see the value of a file', () => {
  expect(problemsOf({ MODEL_API_KEY_FILE: file('model', 'key') })).toEqual([
    'MODEL_API_KEY needs MODEL_BASE_URL as well',
  ]);
  const variables = { REDIS_URL_FILE: file('needed', 'redis://cache') };
  expect(() => parseConfig(variables, { by: 'the role relay', variables: ['REDIS_URL'] })).not.toThrow();
});

it('shows that a file holds the value, without the value, or what is wrong with the file', () => {
  const shown = describeConfig({
    PARLEY_BOOTSTRAP_KEY_FILE: file('shown', 'another-key-of-a-file'),
    REDIS_URL_FILE: file('address', 'redis://me:hunter2-of-a-file@cache'),
    MODEL_API_KEY_FILE: join(folder, 'missing'),
  });
  const of = (name: string) => shown.find((variable) => variable.name === name);
  expect(JSON.stringify(shown)).not.toMatch(/another-key|hunter2/);
  expect(of('PARLEY_BOOTSTRAP_KEY')).toMatchObject({ value: '********', source: 'file' });
  expect(of('REDIS_URL')).toMatchObject({ value: 'redis://me:********@cache', source: 'file' });
  expect(of('MODEL_API_KEY')).toMatchObject({
    value: expect.stringMatching(/^MODEL_API_KEY_FILE cannot/),
    source: 'file',
  });
});
