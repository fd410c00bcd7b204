/** Every secret of the configuration, echoed by others: it reaches no log, answer, event, trace and no shown configuration. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';

import { storeUnavailable } from '#libs/kernel/faults.ts';
import { environment } from '#libs/platform/config/config.ts';
import { describeConfig, parseConfig } from '#libs/platform/config/index.ts';
import { defineEvents } from '#libs/platform/eventstore/index.ts';
import { answerOf, HttpError } from '#libs/platform/http/index.ts';
import { refusalLines } from '#libs/platform/lifecycle/index.ts';
import { createLogger, createMetrics, newSpanId, otlpSpans } from '#libs/platform/telemetry/index.ts';
import { startOtlpReceiver, type OtlpReceiver } from '#test/support/otlp-receiver.ts';

/** With what JSON, addresses and replacements treat specially. */
const plant = (name: string): string => `planted"${name.toLowerCase()}$&/+ ü`;

/** Variables with a secret, and how they hold it. */
const planted: [name: string, value: string, secret: string][] = Object.entries(environment.shape)
  .filter(([, schema]) => schema.meta()?.['secret'] === true)
  .map(([name]) => [name, name.includes('HEADERS') ? `authorization=${plant(name)}` : plant(name), plant(name)]);
for (const [name, protocol] of [
  ['EVENTSTORE_URL', 'esdb'],
  ['REDIS_URL', 'redis'],
] as const) {
  planted.push([name, `${protocol}://parley:${encodeURIComponent(plant(name))}@127.0.0.1:1`, plant(name)]);
}

const codec = defineEvents({ 'Said.v1': z.object({ text: z.string(), more: z.record(z.string(), z.unknown()) }) });

let receiver: OtlpReceiver;
beforeAll(async () => {
  receiver = await startOtlpReceiver();
  for (const [name, value] of planted) {
    // Some are refused without others: what an operator wrote is secret anyway.
    try {
      parseConfig({ [name]: value });
    } catch (error) {
      expect(refusalLines(error)).toBeDefined();
    }
  }
});
afterAll(() => receiver?.stop());

it('knows secrets of every kind', () => {
  expect(planted.map(([name]) => name)).toEqual(
    expect.arrayContaining(['MODEL_API_KEY', 'PARLEY_TOKEN_SECRET', 'KAFKA_SASL_PASSWORD', 'REDIS_URL']),
  );
});

describe.each(planted)('the secret in %s', (name, value, secret) => {
  const forms = [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)];
  const echo = `401: the key ${secret} is not valid at https://x:${encodeURIComponent(secret)}@host`;
  const found = (text: string): string[] => forms.filter((form) => text.includes(form));

  it('is in no log line, which stays JSON', () => {
    const lines: string[] = [];
    const log = createLogger({ level: 'trace' }, { write: (line) => lines.push(line) });
    log.warn({ err: new Error(echo, { cause: new Error(echo) }), deep: { list: [echo] }, [echo]: 1 }, echo);
    expect(found(lines.join(''))).toEqual([]);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ msg: expect.stringContaining('[redacted]') }]);
  });

  it('is in no answer', () => {
    expect(found(answerOf(new HttpError(502, 'bad', echo)).detail)).toEqual([]);
    expect(found(answerOf(Object.assign(storeUnavailable('Redis'), { message: echo })).detail)).toEqual([]);
  });

  it('is in no event, nor in the names of its members', () => {
    expect(
      found(JSON.stringify(codec.encode({ type: 'Said.v1', data: { text: echo, more: { [echo]: [echo] } } }))),
    ).toEqual([]);
  });

  it('is in no trace', async () => {
    const metrics = createMetrics();
    const spans = otlpSpans(
      {
        url: `${receiver.endpoint}/v1/traces`,
        headers: {},
        protocol: 'http/json',
        attributes: { 'service.name': 'test' },
      },
      { log: { warn: () => undefined }, metrics },
    );
    const context = { traceId: `${'0'.repeat(31)}1`, spanId: newSpanId(), isSampled: true };
    const attributes = { text: echo, list: [echo] };
    const times = { startedMs: Date.now(), endedMs: Date.now() };
    spans.record({ name: echo, kind: 'client', context, parentSpanId: null, ...times, attributes, error: echo });
    await spans.close();
    expect(found(JSON.stringify(receiver.spans))).toEqual([]);
    expect(JSON.stringify(receiver.spans)).toContain('[redacted]');
  });

  it('is not in the shown configuration, whichever variable holds it', () => {
    const shown = describeConfig({ [name]: value, OTEL_SERVICE_NAME: `service of ${secret}` });
    expect(found(JSON.stringify(shown.map((variable) => variable.value)))).toEqual([]);
    expect(shown.flatMap((variable) => found(variable.value ?? ''))).toEqual([]);
  });
});
