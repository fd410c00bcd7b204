/* Interactions that are posted incomplete and get their content in parts. */
import { afterAll, beforeAll, expect, it } from 'vitest';

import { channelKeys } from '#libs/features/channels/channel.keys.ts';
import { currentDocuments } from '#libs/features/channels/interaction/reads/present.ts';
import { sequenceOf } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { CollectionReader, ReadModel } from '#libs/platform/readmodel/index.ts';
import type { ApplyOutcome, EntityWrite } from '#libs/platform/readmodel/read-model.ts';
import { composeFeatures, type Features } from '#services/features.ts';
import { PLAIN_CHANNEL, serviceCommand } from '#test/support/commands.ts';
import { CountingStore } from '#test/support/counting-store.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';

/** Notes how many bytes each run writes. */
class MeasuredReadModel extends ReadModel {
  readonly bytes: number[] = [];

  override apply(writes: readonly EntityWrite[]): Promise<ApplyOutcome[]> {
    const args = writes.flatMap(({ operations }) => operations.flatMap((operation) => operation.args));
    this.bytes.push(args.reduce<number>((sum, arg) => sum + Buffer.byteLength(String(arg)), 0));
    return super.apply(writes);
  }
}

let test: TestPlatform;
let readModel: MeasuredReadModel;
let features: Features;
const organizationId = newId();

beforeAll(async () => {
  test = await startTestPlatform();
  readModel = new MeasuredReadModel(test.platform.redis);
  features = composeFeatures({ ...test.platform, readModel });
});
afterAll(() => test.stop());

const context = () => serviceCommand(organizationId);
const textOf = (part: number) => ({ type: 'text', text: `Teil ${part} – ünïcödé 😀` });
const textsOf = (parts: number) => Array.from({ length: parts }, (_, part) => textOf(part));

/** A channel with an interaction that has got parts. */
async function streamed(parts: number) {
  const channelId = newId();
  await features.channels.create(context(), { id: channelId, ...PLAIN_CHANNEL });
  const posted = await features.channels.interactions.post(
    context(),
    channelId,
    {
      participant: { type: 'system' },
      content: [],
      contentRole: 'agent_response',
      complete: false,
      metadata: { content: [], 'content_role": "': '"content":[' },
      invocationConfig: null,
      turnId: null,
      spanId: newId(),
      parentSpanId: null,
      organizationApplication: null,
    },
    { spanIsNew: true },
  );
  if (!posted.ok) throw new Error(posted.rejection.reason);
  const place = { channelId, sequence: sequenceOf(posted.revision) };
  for (let part = 0; part < parts; part++) await append(features, place, part);
  return place;
}

type Place = Awaited<ReturnType<typeof streamed>>;

async function append({ channels }: Features, place: Place, part: number): Promise<string> {
  const result = await channels.interactions.append(context(), place, [textOf(part)], 'operator');
  if (!result.ok) throw new Error(result.rejection.reason);
  return String(result.document);
}

async function read(place: Place): Promise<string> {
  const audience = { reader: null, includeIncomplete: true };
  return String(await features.channels.queries.interaction(organizationId, place, audience));
}

it('a part writes as much to Redis after many parts as after a few', async () => {
  readModel.bytes.length = 0;
  await streamed(120);
  const few = readModel.bytes.at(12) ?? 0;
  const many = readModel.bytes.at(-1) ?? 0;
  expect(readModel.bytes).toHaveLength(122);
  // Numbers have more digits, and every hundredth event begins a block of history.
  expect(many - few).toBeLessThan(20);
});

it('a process that does not know the interaction continues it where the others are, without reading its events', async () => {
  const place = await streamed(20);
  const store = new CountingStore(test.platform.store);
  const document = await append(composeFeatures({ ...test.platform, store }), place, 20);
  expect(JSON.parse(document)).toMatchObject({ content: textsOf(21), complete: false });
  expect(await read(place)).toBe(document);
  // The last one, whose time a snapshot lacks.
  expect(store.eventsRead).toBe(1);
  expect(await append(features, place, 21)).toBe(await read(place));
});

it('is folded from the log again if what is stored of it is missing', async () => {
  const place = await streamed(3);
  await test.platform.redis.remove([channelKeys(organizationId, place.channelId).open(place.sequence)]);
  const document = await append(features, place, 3);
  expect(JSON.parse(document)).toMatchObject({ content: textsOf(4) });
  expect(await read(place)).toBe(document);
});

it('is read as complete if it is completed between the reads of its two keys', async () => {
  const place = await streamed(2);
  class Late extends CollectionReader {
    override async texts(keys: readonly string[]): Promise<(Buffer | null)[]> {
      await features.channels.interactions.complete(context(), place, null, 'operator');
      return super.texts(keys);
    }
  }
  const keys = channelKeys(organizationId, place.channelId);
  const [document] = await currentDocuments(new Late(test.platform.redis), keys, [place.sequence]);
  expect(JSON.parse(String(document))).toMatchObject({ content: textsOf(2), complete: true });
});
