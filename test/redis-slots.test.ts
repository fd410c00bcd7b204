/** All keys of one script are in one slot of a Redis Cluster, whatever characters the ids contain. */
import calculateSlot from 'cluster-key-slot';
import { describe, expect, it } from 'vitest';

import { CHANNEL_READ_MODEL } from '#libs/features/channels/index.ts';
import { channelKeys, draftKeys } from '#libs/features/channels/channel.keys.ts';
import { organizationEntity } from '#libs/features/organizations/index.ts';
import { ephemeralKeys, channelTopic } from '#libs/platform/live/live.keys.ts';
import { historyKeys } from '#libs/platform/readmodel/history.ts';
import { entityKeys, listKeys, projectionKeys } from '#libs/platform/readmodel/index.ts';
import { partitionsKey } from '#libs/platform/readmodel/read-model.keys.ts';

const slots = (keys: readonly string[]): number => new Set(keys.map((key) => calculateSlot(key))).size;
const strings = (keys: object): string[] => Object.values(keys).filter((key): key is string => typeof key === 'string');

describe.each([
  ['0198c0de-0000-7000-8000-000000000001', '0198c0de-0000-7000-8000-000000000002'],
  ['organization', 'ключ'],
])('of the organization %s', (organizationId, id) => {
  it('all keys and topics of a channel are in one slot', () => {
    const channel = entityKeys(CHANNEL_READ_MODEL, organizationId, id);
    const interactions = channelKeys(organizationId, id);
    const drafts = draftKeys(organizationId, id);
    const keys = [
      ...strings(channel),
      ...strings(interactions),
      interactions.index('all'),
      interactions.index('turn=a'),
      ...strings(historyKeys(channel)),
      historyKeys(channel).values('participants'),
      historyKeys(channel).blocks('participants'),
      drafts.lengths,
      `${drafts.textPrefix}1`,
      ...strings(ephemeralKeys('typing', organizationId, id)),
      channelTopic(organizationId, id),
    ];
    expect(keys.length).toBeGreaterThan(20);
    expect(slots(keys)).toBe(1);
  });

  it('a list is in one slot with its indexes', () => {
    const names = [CHANNEL_READ_MODEL, organizationEntity.projection];
    for (const { members, indexPrefix } of names.map((name) => listKeys(name, organizationId))) {
      expect(slots([members, `${indexPrefix}all`, `${indexPrefix}type={x}`])).toBe(1);
    }
  });

  it('different entities are spread', () => {
    expect(
      slots([organizationId, id].flatMap((one) => strings(entityKeys(organizationEntity.projection, one, one)))),
    ).toBe(2);
  });
});

it('the projection state of all categories is in one slot', () => {
  const names = [CHANNEL_READ_MODEL, { category: 'user', version: 2 }];
  expect(slots([partitionsKey(names), ...names.flatMap((name) => strings(projectionKeys(name)))])).toBe(1);
});
