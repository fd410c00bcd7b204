/**
 * A whole Parley with a relay to Kafka: the API is not affected while Kafka is down, and nothing is missing
 * afterwards.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LogMessages, logTopics } from '#libs/platform/kafka/index.ts';
import { answerOf } from '#test/support/channel-load.ts';
import { eventually } from '#test/support/eventually.ts';
import { KAFKA_START_MS, startTestKafkaProcess, type TestKafkaProcess } from '#test/support/kafka/broker.ts';
import { readEvents } from '#test/support/kafka/topic-reader.ts';
import { asRecord } from '#test/support/log-reader.ts';
import { type ParleyProcess, startParleyProcess } from '#test/support/parley-process.ts';

const SECRET = 'a secret of this test only';
const WAIT = { timeoutMs: 60_000, everyMs: 200 };

let kafka: TestKafkaProcess;
let parley: ParleyProcess;

beforeAll(async () => {
  kafka = await startTestKafkaProcess();
  parley = await startParleyProcess({ env: { KAFKA_BROKERS: kafka.brokers.join(','), PARLEY_TOKEN_SECRET: SECRET } });
  await parley.ready();
}, KAFKA_START_MS);

afterAll(async () => {
  await parley?.stop();
  await kafka?.stop();
});

describe('an outage of Kafka', { timeout: 180_000 }, () => {
  it('does not affect callers of the API, and the events of that time are in Kafka afterwards', async () => {
    const channel = await createChannel();
    await renamed(channel, 10);
    await eventually(async () => expect((await relayProbe())['phase']).toBe('active'), WAIT);

    await kafka.kill9();
    await renamed(channel, 20);
    await eventually(async () => expect((await relayProbe())['problem']).toMatch(/Kafka is unavailable/), WAIT);
    await renamed(channel, 20);
    await kafka.restart();
    await renamed(channel, 10);

    // Created, and renamed sixty times.
    await eventually(async () => expect(new Set(await revisionsInKafka(channel)).size).toBe(61), WAIT);
    expect([...new Set(await revisionsInKafka(channel))]).toEqual(Array.from({ length: 61 }, (_, n) => n));
  });

  it('delays neither the stop of a process nor its next start', async () => {
    await kafka.kill9();
    await parley.kill9();
    await parley.start();
    await parley.ready();
    const channel = await createChannel();
    await renamed(channel, 3);
    await kafka.restart();
    await eventually(async () => expect(new Set(await revisionsInKafka(channel)).size).toBe(4), WAIT);
    await kafka.pause();
    expect(await parley.stop()).toBe(0);
    await kafka.resume();
  });
});

async function createChannel(): Promise<string> {
  const reply = await parley.api.post('/api/v1/channels', { name: 'a channel', participants: [] });
  expect(reply.status).toBe(200);
  return answerOf(reply).channelId;
}

let names = 0;

/** Commands are answered normally, and so is the readiness check. */
async function renamed(channel: string, times: number): Promise<void> {
  for (let time = 0; time < times; time++) {
    const reply = await parley.api.patch(`/api/v1/channels/${channel}`, { name: `name ${++names}` });
    expect(reply).toMatchObject({ status: 200 });
  }
  expect(await parley.api.get('/health/ready')).toMatchObject({ status: 200 });
}

async function relayProbe(): Promise<Record<string, unknown>> {
  const { checks } = asRecord((await parley.api.get('/health/ready')).json());
  return asRecord(asRecord(asRecord(checks)['relay'])['detail']);
}

async function revisionsInKafka(channel: string): Promise<readonly number[]> {
  const messages = new LogMessages(SECRET);
  const events = await readEvents(kafka.brokers, logTopics('parley').log, messages);
  return events.filter(({ stream }) => stream === `channel-${channel}`).map(({ revision }) => revision);
}
