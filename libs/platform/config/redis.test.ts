import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { makeCertificateAuthority } from '#test/support/kafka/certificates.ts';

import { ConfigError, parseConfig } from './config.ts';
import type { Variables } from './secret-files.ts';

const REDIS = { REDIS_URL: 'rediss://:secret@redis:6379' };
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'parley-test-redis-config-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function fileOf(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

function problemsOf(variables: Variables): readonly string[] {
  try {
    parseConfig(variables);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

describe('configuration of Redis', () => {
  it('takes a CA, and a certificate with its key', async () => {
    const authority = makeCertificateAuthority('tests');
    const { cert, key } = authority.issue('parley');
    const config = parseConfig({
      ...REDIS,
      REDIS_TLS_CA_FILE: await fileOf('ca.pem', authority.cert),
      REDIS_TLS_CERT_FILE: await fileOf('cert.pem', cert),
      REDIS_TLS_KEY_FILE: await fileOf('key.pem', key),
    });
    expect(config.redisTls).toMatchObject({ ca: { pem: authority.cert }, cert: { pem: cert }, key: { pem: key } });
    expect(parseConfig(REDIS).redisTls).toEqual({ ca: null, cert: null, key: null });
  });

  it('names the variables of files that cannot be used', async () => {
    const authority = makeCertificateAuthority('tests');
    const [one, other] = [authority.issue('one'), authority.issue('other')];
    const ca = await fileOf('ca.pem', authority.cert);
    const cert = await fileOf('cert.pem', one.cert);
    const key = await fileOf('key.pem', other.key);
    const missing = join(folder, 'nowhere.pem');
    expect(problemsOf({ ...REDIS, REDIS_TLS_CA_FILE: missing })).toEqual([
      expect.stringMatching(/^REDIS_TLS_CA_FILE .*nowhere\.pem/),
    ]);
    expect(problemsOf({ ...REDIS, REDIS_TLS_CA_FILE: await fileOf('empty.pem', 'no certificate\n') })).toEqual([
      expect.stringMatching(/^REDIS_TLS_CA_FILE .*CERTIFICATE/),
    ]);
    expect(problemsOf({ ...REDIS, REDIS_TLS_CERT_FILE: cert })).toEqual([
      'REDIS_TLS_CERT_FILE needs REDIS_TLS_KEY_FILE as well',
    ]);
    expect(problemsOf({ ...REDIS, REDIS_TLS_CERT_FILE: cert, REDIS_TLS_KEY_FILE: key })).toEqual([
      expect.stringMatching(/^REDIS_TLS_CERT_FILE, REDIS_TLS_KEY_FILE cannot be used: .*mismatch/),
    ]);
    for (const url of [{ REDIS_URL: 'redis://redis:6379' }, {}]) {
      expect(problemsOf({ ...url, REDIS_TLS_CA_FILE: ca })).toEqual([
        'REDIS_TLS_CA_FILE needs a REDIS_URL that begins with rediss://',
      ]);
    }
  });
});
