/** Brokers with TLS and authentication, configured by the variables. */
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import kafkajs, { type AclEntry, type Admin } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NO_EVENTS } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { parseConfig } from '#libs/platform/config/index.ts';
import { connectEventStore, type EventStoreClients } from '#libs/platform/eventstore/index.ts';
import { KafkaConnection, kafkaOptionsOf, LogMessages, logTopics, Relay } from '#libs/platform/kafka/index.ts';
import { silentLog } from '#libs/platform/lifecycle/index.ts';
import { composePublicMessages } from '#services/features.ts';
import { logMetadata } from '#test/support/log-events.ts';
import { plainKafka } from '#test/support/kafka/plain-kafka.ts';
import { startTestEventStore } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { KAFKA_START_MS } from '#test/support/kafka/broker.ts';
import { type SecureTestKafka, startSecureTestKafka } from '#test/support/kafka/secure-broker.ts';
import { readTopic } from '#test/support/kafka/topic-reader.ts';

const SECRET = 'a secret of this test only';
const WAIT = { timeoutMs: 60_000, everyMs: 100 };

let broker: SecureTestKafka;
let eventStore: Awaited<ReturnType<typeof startTestEventStore>>;
let log: EventStoreClients;

beforeAll(async () => {
  [broker, eventStore] = await Promise.all([startSecureTestKafka(), startTestEventStore()]);
  log = await connectEventStore({ url: eventStore.url });
}, KAFKA_START_MS);

afterAll(async () => {
  await log?.close();
  await Promise.all([broker?.stop(), eventStore?.stop()]);
});

describe('Kafka with TLS', { timeout: 120_000 }, () => {
  it.each(['plain', 'scram-sha-256', 'scram-sha-512'])(
    'authenticates with a user and a password: %s',
    async (mechanism) => {
      expect(await sentThrough(configOf(mechanism))).toEqual(['sent']);
    },
  );

  it('authenticates with a certificate', async () => {
    const { withCertificate, files } = broker;
    const variables = { KAFKA_TLS_CERT_FILE: files.cert, KAFKA_TLS_KEY_FILE: files.key };
    expect(await sentThrough({ KAFKA_BROKERS: withCertificate, ...trusted(), ...variables })).toEqual(['sent']);
  });

  it('reads its certificate again when the file was replaced', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'parley-test-certificate-'));
    const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
    await Promise.all([writeFile(cert, broker.untrusted.cert), writeFile(key, broker.untrusted.key)]);
    const variables = { ...trusted(), KAFKA_TLS_CERT_FILE: cert, KAFKA_TLS_KEY_FILE: key };
    const kafka = connect({ KAFKA_BROKERS: broker.withCertificate, ...variables });
    const topic = `test-${newId()}`;
    await expect(kafka.ensureTopics([{ topic, partitions: 1 }])).rejects.toThrow();
    // Not yet a pair.
    await copyFile(broker.files.cert, cert);
    await expect(kafka.ensureTopics([{ topic, partitions: 1 }])).rejects.toThrow();
    await copyFile(broker.files.key, key);
    await kafka.ensureTopics([{ topic, partitions: 1 }]);
    await kafka.send(topic, [{ key: 'a', value: 'sent' }]);
    await kafka.close();
    await rm(folder, { recursive: true });
  });

  it('publishes the log while the right to write for other teams is missing, and that topic afterwards', async () => {
    const topics = logTopics(`test-${newId()}`);
    const events = Array.from({ length: 3 }, () => {
      const id = newId();
      return { id, type: 'ChannelRenamed.v1', data: { name: 'a' }, metadata: logMetadata(id) };
    });
    await log.store.append(`channel-${newId()}`, NO_EVENTS, events);
    await withAcl(topics.events, (admin, acl) => admin.createAcls({ acl: [acl] }));
    const kafka = connect(configOf('plain'));
    const relay = new Relay({
      feed: log.feed,
      store: log.store,
      kafka,
      messages: new LogMessages(SECRET),
      publicMessages: composePublicMessages(() => undefined),
      topics,
      onProblem: () => undefined,
    });
    const abort = new AbortController();
    const ended = relay.run(abort.signal);
    const countIn = async (topic: string) =>
      (await readTopic([broker.inClear], topic)).filter(({ key }) => key !== null).length;
    await eventually(() => relay.progress.problem?.includes('TOPIC_AUTHORIZATION_FAILED') === true, WAIT);
    expect(relay.progress).toMatchObject({
      phase: 'active',
      problem: expect.stringMatching(`${topics.events} refuses`),
    });
    expect(await countIn(topics.log)).toBe(3);
    await withAcl(topics.events, (admin, acl) => {
      const { permissionType, operation, host, principal } = acl;
      const filter = { resourceName: acl.resourceName, resourceType: acl.resourceType, host, principal };
      return admin.deleteAcls({
        filters: [{ ...filter, permissionType, operation, resourcePatternType: acl.resourcePatternType }],
      });
    });
    await eventually(() => relay.progress.problem === null, WAIT);
    expect([await countIn(topics.log), await countIn(topics.events)]).toEqual([3, 3]);
    abort.abort();
    await ended;
    await kafka.close();
  });

  it.each([
    ['another password', () => ({ ...configOf('plain'), KAFKA_SASL_PASSWORD: 'hunter2' }), /authentication failed/i],
    [
      'another password, hashed',
      () => ({ ...configOf('scram-sha-512'), KAFKA_SASL_PASSWORD: 'hunter2' }),
      /authentic/i,
    ],
    ['an untrusted broker', () => ({ ...configOf('plain'), KAFKA_TLS_CA_FILE: '' }), /verify|self-signed|certificate/],
    ['no password', () => ({ KAFKA_BROKERS: broker.withPassword, ...trusted() }), /unavailable|sasl|authentic/i],
  ])('reports the reason why it is away: %s', async (_, variables, problem) => {
    const kafka = connect(variables());
    const problems: unknown[] = [];
    const relay = new Relay({
      feed: log.feed,
      store: log.store,
      kafka,
      messages: new LogMessages(SECRET),
      topics: logTopics(`test-${newId()}`),
      onProblem: (error) => problems.push(error),
    });
    const abort = new AbortController();
    const ended = relay.run(abort.signal);
    await eventually(() => relay.progress.problem !== null, WAIT);
    expect(relay.progress).toMatchObject({ phase: 'away', problem: expect.stringMatching(problem) });
    expect(relay.progress.problem).not.toContain('hunter2');
    // It retries, and a stop does not wait for it.
    await eventually(() => problems.length >= 2, WAIT);
    abort.abort();
    await ended;
    await kafka.close();
  });
});

/** A rule that forbids Parley to use a topic. */
async function withAcl(topic: string, work: (admin: Admin, acl: AclEntry) => Promise<unknown>): Promise<void> {
  const admin = plainKafka([broker.inClear]).admin();
  await admin.connect();
  await work(admin, {
    resourceType: kafkajs.AclResourceTypes.TOPIC,
    resourceName: topic,
    resourcePatternType: kafkajs.ResourcePatternTypes.LITERAL,
    principal: `User:${broker.username}`,
    host: '*',
    operation: kafkajs.AclOperationTypes.ALL,
    permissionType: kafkajs.AclPermissionTypes.DENY,
  }).finally(() => admin.disconnect());
}

const trusted = () => ({ KAFKA_TLS: 'true', KAFKA_TLS_CA_FILE: broker.files.ca });

function configOf(mechanism: string) {
  const { username, password } = broker;
  return {
    KAFKA_BROKERS: broker.withPassword,
    ...trusted(),
    KAFKA_SASL_MECHANISM: mechanism,
    KAFKA_SASL_USERNAME: username,
    KAFKA_SASL_PASSWORD: password,
  };
}

function connect(variables: Readonly<Record<string, string>>): KafkaConnection {
  const config = parseConfig({ ...variables, PARLEY_TOKEN_SECRET: SECRET });
  return new KafkaConnection({ ...kafkaOptionsOf(config, silentLog), requestTimeoutMs: 3_000 });
}

async function sentThrough(variables: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const topic = `test-${newId()}`;
  const kafka = connect(variables);
  await kafka.ensureTopics([{ topic, partitions: 1 }]);
  await kafka.send(topic, [{ key: 'a', value: 'sent' }]);
  await kafka.close();
  return (await readTopic([broker.inClear], topic)).map(({ value }) => String(value));
}
