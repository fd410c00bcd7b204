import { describe, expect, it } from 'vitest';
import { ConfigError, parseConfig, type Needs } from './config.ts';
import type { Variables } from './secret-files.ts';
import { describeConfig } from './describe-config.ts';

describe('configuration', () => {
  it('has a default for everything', () => {
    expect(parseConfig({})).toEqual({
      port: 8080,
      host: '127.0.0.1',
      dataDir: './data',
      accessLog: false,
      bootstrapKey: undefined,
      eventstoreUrl: undefined,
      redisUrl: undefined,
      redisTls: { ca: null, cert: null, key: null },
      kafkaBrokers: [],
      kafkaTopicPrefix: 'parley',
      kafkaPublicEvents: true,
      kafkaAcceptLostEvent: null,
      kafkaSessionTimeoutMs: 6_000,
      kafkaTls: null,
      kafkaSasl: null,
      mediaS3: null,
      projectorFeed: 'kafka',
      revision: 'unknown',
      roles: [],
      logLevel: 'info',
      corsOrigins: [],
      realtimeOrigins: [],
      publicUrl: undefined,
      trustedProxies: [],
      fetchAllowHosts: [],
      embedding: null,
      model: null,
      modelContextTokens: 24_000,
      relevance: { timeoutMs: 5_000 },
      tracing: null,
      prompts: { timeoutMs: 45_000, publicPerAddress: 20, publicPerAgent: 1_000 },
      uploads: {
        perKey: { count: 100, bytes: 2 * 1024 ** 3 },
        perOrganization: { count: 1_000, bytes: 10 * 1024 ** 3 },
      },
      rateLimitPerKey: 60_000,
      rateLimitPerAddress: 120_000,
      requestTimeoutMs: 15_000,
      stopTimeoutMs: 10_000,
      stopDelayMs: 0,
      command: 'npx parley',
    });
  });

  it('takes what the environment says', () => {
    const config = parseConfig({
      PORT: '0',
      HOST: '0.0.0.0',
      PARLEY_BOOTSTRAP_KEY: 'secret',
      EVENTSTORE_URL: 'esdb+discover://a:2113,b:2113?tls=false',
      REDIS_URL: 'rediss://:pw@cache:6380',
      ROLES: 'gateway, projector,',
      CORS_ORIGINS: 'https://app.example.com,http://localhost:3000',
      TRUST_PROXY: '10.0.0.0/8, ::1',
    });
    expect(config).toMatchObject({
      port: 0,
      host: '0.0.0.0',
      bootstrapKey: 'secret',
      eventstoreUrl: 'esdb+discover://a:2113,b:2113?tls=false',
      redisUrl: 'rediss://:pw@cache:6380',
      roles: ['gateway', 'projector'],
      corsOrigins: ['https://app.example.com', 'http://localhost:3000'],
      trustedProxies: ['10.0.0.0/8', '::1'],
    });
  });

  it('takes the model endpoint, which needs a model', () => {
    const given = { MODEL_BASE_URL: 'https://models.example.com/v1', MODEL_NAME: 'small', MODEL_API_KEY: 'key' };
    expect(parseConfig({ ...given, MODEL_IDLE_TIMEOUT_MS: '500' }).model).toEqual({
      baseUrl: 'https://models.example.com/v1',
      name: 'small',
      apiKey: 'key',
      prices: null,
      limits: { totalMs: 120_000, firstPartMs: 60_000, idleMs: 500 },
    });
    expect(() => parseConfig({ ...given, MODEL_NAME: '' })).toThrow('MODEL_BASE_URL needs MODEL_NAME as well');
    expect(() => parseConfig({ MODEL_API_KEY: 'key' })).toThrow('MODEL_API_KEY needs MODEL_BASE_URL as well');
    const prices = { MODEL_PRICE_INPUT: '0.15', MODEL_PRICE_OUTPUT: '2' };
    expect(parseConfig({ ...given, ...prices }).model?.prices).toEqual({ input: 0.15, output: 2 });
    expect(() => parseConfig({ ...given, MODEL_PRICE_OUTPUT: '2' })).toThrow(
      'MODEL_PRICE_OUTPUT needs MODEL_PRICE_INPUT as well',
    );
    expect(() => parseConfig(prices)).toThrow('MODEL_PRICE_INPUT, MODEL_PRICE_OUTPUT need MODEL_BASE_URL as well');
    for (const price of ['-1', '1e3', '1,5', '.5', 'free']) {
      expect(() => parseConfig({ ...given, ...prices, MODEL_PRICE_INPUT: price })).toThrow(
        /^MODEL_PRICE_INPUT must be a decimal number like 2\.5/,
      );
    }
    for (const url of ['ftp://a/v1', 'https://u:p@a/v1', 'https://a/v1?x=1', 'models']) {
      expect(() => parseConfig({ ...given, MODEL_BASE_URL: url })).toThrow(/^MODEL_BASE_URL must be a URL/);
    }
  });

  it('takes an empty variable for an unset one', () => {
    expect(parseConfig({ PORT: '', REDIS_URL: ' ' })).toMatchObject({ port: 8080, redisUrl: undefined });
  });

  it('names all wrong variables at once, one line each', () => {
    expect(problemsOf({ TRUST_PROXY: '10.0.0.0/33' })).toEqual([
      'TRUST_PROXY must hold addresses or networks like 10.0.0.0/8; "10.0.0.0/33" is none',
    ]);
    const wrong = {
      PORT: '80a',
      LOG_LEVEL: 'loud',
      CORS_ORIGINS: 'https://a.example,b.example',
    };
    expect(problemsOf(wrong)).toEqual([
      'PORT must be a whole number from 0 to 65535; it is "80a"',
      'LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent; it is "loud"',
      'CORS_ORIGINS must hold origins like https://app.example.com; "b.example" is none',
    ]);
  });

  it('names what is missing together with what is wrong', () => {
    const needs = { by: 'the role relay', variables: ['REDIS_URL', 'KAFKA_BROKERS'] } as const;
    expect(problemsOf({ PORT: 'x', REDIS_URL: ' ' }, needs)).toEqual([
      'PORT must be a whole number from 0 to 65535; it is "x"',
      'REDIS_URL is missing; the role relay needs it',
      'KAFKA_BROKERS is missing; the role relay needs it',
    ]);
    expect(problemsOf({ REDIS_URL: 'redis://cache' }, { ...needs, variables: ['REDIS_URL'] })).toEqual([]);
  });

  it.each(['-1', '1.5', '65536', '0x10', '1e3', '999999999999999999999'])('refuses %s as a port', (PORT) => {
    expect(problemsOf({ PORT })).toHaveLength(1);
  });

  it('does not repeat an address that may hold a password', () => {
    const problems = problemsOf({ REDIS_URL: 'http://:hunter2@cache', EVENTSTORE_URL: 'admin:hunter2@db' });
    expect(problems).toEqual([
      expect.stringMatching(/^EVENTSTORE_URL must look like esdb:/),
      'REDIS_URL must be a URL like redis://host:6379/0 or rediss://…, without options, or several of one kind, separated by commas',
    ]);
  });

  it.each(['redis://cache?db=3', 'redis://cache/0?tls=true', 'redis://cache/zero', 'redis://:a#b@cache'])(
    'refuses %s, part of which would be ignored',
    (REDIS_URL) => {
      expect(problemsOf({ REDIS_URL })).toHaveLength(1);
    },
  );

  it('takes the nodes of a Redis Cluster', () => {
    const REDIS_URL = 'rediss://me:pw@a:7001, rediss://b:7002/0,rediss://[::1]:7003/';
    expect(parseConfig({ REDIS_URL }).redisUrl).toBe(REDIS_URL);
  });

  it.each(['redis://a:1,rediss://b:2', 'redis://a:1,', 'redis://a:1,b:2', 'redis://a:1,redis://b:2/3'])(
    'refuses %s as the nodes of a cluster',
    (REDIS_URL) => {
      expect(problemsOf({ REDIS_URL })).toHaveLength(1);
    },
  );

  it('takes the addresses of Kafka brokers', () => {
    const variables = { KAFKA_BROKERS: 'broker-1:9092, 10.0.0.2:9093,[::1]:9094', PARLEY_TOKEN_SECRET: 'x'.repeat(16) };
    expect(parseConfig(variables).kafkaBrokers).toEqual(['broker-1:9092', '10.0.0.2:9093', '[::1]:9094']);
  });

  it.each(['localhost', 'kafka://a:9092', 'a:0', 'a:65536', 'a:9092/b', ':9092'])(
    'refuses %s as a broker',
    (broker) => {
      expect(problemsOf({ KAFKA_BROKERS: `a:1,${broker}`, PARLEY_TOKEN_SECRET: 'x'.repeat(16) })).toEqual([
        `KAFKA_BROKERS must hold addresses like broker-1:9092; ${JSON.stringify(broker)} is none`,
      ]);
    },
  );

  it('takes hosts that may be fetched', () => {
    const FETCH_ALLOW_HOSTS = 'Wiki.internal, wiki.internal:8080,127.1:9000,[::1], [fd00::0:1]:443';
    expect(parseConfig({ FETCH_ALLOW_HOSTS }).fetchAllowHosts).toEqual([
      { host: 'wiki.internal', port: null },
      { host: 'wiki.internal', port: 8080 },
      { host: '127.0.0.1', port: 9000 },
      { host: '::1', port: null },
      { host: 'fd00::1', port: 443 },
    ]);
  });

  it.each(['http://a', 'a/b', '*.internal', '10.0.0.0/8', '::1', 'a:0', 'a:65536', 'a b', '1.2.3.4.5'])(
    'refuses %s as a host that may be fetched',
    (host) => {
      expect(problemsOf({ FETCH_ALLOW_HOSTS: `a,${host}` })).toEqual([
        `FETCH_ALLOW_HOSTS must hold hosts like wiki.internal or wiki.internal:8080; ${JSON.stringify(host)} is none`,
      ]);
    },
  );

  it('takes an endpoint for embeddings', () => {
    const given = { EMBEDDING_BASE_URL: 'http://127.0.0.1:11434/v1/', EMBEDDING_MODEL: 'small' };
    expect(parseConfig(given).embedding).toEqual({
      baseUrl: 'http://127.0.0.1:11434/v1',
      apiKey: null,
      model: 'small',
      dimensions: null,
      queryPrefix: '',
      passagePrefix: '',
      minSimilarity: 0.35,
    });
    const prefixes = { EMBEDDING_QUERY_PREFIX: '"query: "', EMBEDDING_PASSAGE_PREFIX: ' passage: ' };
    expect(parseConfig({ ...given, ...prefixes }).embedding).toMatchObject({
      queryPrefix: 'query: ',
      passagePrefix: 'passage:',
    });
  });

  it.each<[Variables, RegExp]>([
    [{ EMBEDDING_BASE_URL: 'http://a' }, /^EMBEDDING_BASE_URL needs EMBEDDING_MODEL/],
    [{ EMBEDDING_API_KEY: 'secret' }, /^EMBEDDING_API_KEY needs EMBEDDING_BASE_URL/],
    [{ EMBEDDING_QUERY_PREFIX: 'query: ' }, /^EMBEDDING_QUERY_PREFIX needs EMBEDDING_BASE_URL/],
    [
      { EMBEDDING_BASE_URL: 'http://u:secret@a', EMBEDDING_MODEL: 'm' },
      /^EMBEDDING_BASE_URL must be a URL like https:.*without a user/,
    ],
    [{ EMBEDDING_BASE_URL: 'http://:80', EMBEDDING_MODEL: 'm' }, /^EMBEDDING_BASE_URL must be a URL like http/],
    [{ EMBEDDING_BASE_URL: 'file:///etc', EMBEDDING_MODEL: 'm' }, /^EMBEDDING_BASE_URL must be a URL like http/],
    [{ EMBEDDING_BASE_URL: 'http://a/v1?key=1', EMBEDDING_MODEL: 'm' }, /^EMBEDDING_BASE_URL must be a URL like http/],
  ])('refuses an endpoint for embeddings as in %j', (given, message) => {
    expect(problemsOf(given)).toEqual([expect.stringMatching(message)]);
    expect(problemsOf(given).join('')).not.toContain('secret');
  });

  it('refuses Kafka without a secret that other processes may share', () => {
    expect(problemsOf({ KAFKA_BROKERS: 'localhost:9092' })[0]).toMatch(/^KAFKA_BROKERS needs PARLEY_TOKEN_SECRET/);
  });
});

describe('description of the configuration', () => {
  it('shows the source of each value', () => {
    const described = describeConfig({ PORT: '9000' });
    expect(described.find(({ name }) => name === 'PORT')).toMatchObject({
      value: '9000',
      source: 'environment',
      default: '8080',
    });
    expect(described.find(({ name }) => name === 'HOST')).toMatchObject({ value: '127.0.0.1', source: 'default' });
    expect(described.find(({ name }) => name === 'REDIS_URL')).toMatchObject({ value: null, source: 'default' });
  });

  it('describes every variable', () => {
    expect(describeConfig({}).filter(({ description }) => description.length < 20)).toEqual([]);
  });

  it('hides secrets and passwords', () => {
    const described = describeConfig({
      PARLEY_BOOTSTRAP_KEY: 'hunter2',
      REDIS_URL: 'redis://me:hunter2@cache:6379/0',
      EVENTSTORE_URL: 'esdb://admin:hunter2@db:2113',
    });
    expect(JSON.stringify(described)).not.toContain('hunter2');
    expect(described.find(({ name }) => name === 'REDIS_URL')?.value).toBe('redis://me:********@cache:6379/0');
  });

  it('shows what is wrong instead of refusing it', () => {
    expect(describeConfig({ PORT: 'x' })[0]).toMatchObject({ name: 'PORT', value: 'x', source: 'environment' });
  });
});

function problemsOf(variables: Variables, needs?: Needs): readonly string[] {
  try {
    parseConfig(variables, needs);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}
