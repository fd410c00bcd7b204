/** What one script touches is in one slot of a Redis Cluster, whatever is in the ids. */
import calculateSlot from 'cluster-key-slot';
import { describe, expect, it } from 'vitest';

import { channelListKeys } from '#libs/features/channels/channels.keys.ts';
import { draftKeys, interactionKeys } from '#libs/features/interactions/reads/interaction.keys.ts';
import { keyListKeys } from '#libs/features/keys/keys.keys.ts';
import { organizationEntity } from '#libs/features/organizations/index.ts';
import { reactionKeys } from '#libs/features/reactions/reaction.marks.ts';
import { userEntity } from '#libs/features/users/index.ts';
import { ephemeralKeys, liveTopic } from '#libs/platform/live/live.keys.ts';
import { historyKeys } from '#libs/platform/readmodel/history.ts';
import { entityKeys } from '#libs/platform/readmodel/index.ts';
import { projectionKeys, PROJECTION_KEYS } from '#libs/platform/readmodel/read-model.keys.ts';

const slots = (keys: readonly string[]): number => new Set(keys.map((key) => calculateSlot(key))).size;
const strings = (keys: object): string[] => Object.values(keys).filter((key): key is string => typeof key === 'string');

describe.each([
  ['0198c0de-0000-7000-8000-000000000001', '0198c0de-0000-7000-8000-000000000002'],
  ['organization', 'ключ'],
])('of the organization %s', (organizationId, id) => {
  it('all that is kept and told of a channel is in one slot', () => {
    const channel = entityKeys('channel', organizationId, id);
    const interactions = interactionKeys(organizationId, id);
    const drafts = draftKeys(organizationId, id);
    const keys = [
      ...strings(channel),
      ...strings(interactions),
      interactions.index('all'),
      interactions.index('turn=a'),
      ...strings(reactionKeys(organizationId, id)),
      ...strings(historyKeys(channel)),
      historyKeys(channel).values('participants'),
      historyKeys(channel).blocks('participants'),
      drafts.lengths,
      `${drafts.textPrefix}1`,
      ...strings(ephemeralKeys('typing', organizationId, id)),
      liveTopic(organizationId, id),
    ];
    expect(keys.length).toBeGreaterThan(20);
    expect(slots(keys)).toBe(1);
  });

  it('a list is in one slot with its indexes', () => {
    const lists = [channelListKeys, userEntity.list, keyListKeys, organizationEntity.list].map((list) =>
      list(organizationId),
    );
    for (const { members, indexPrefix } of lists) {
      expect(slots([members, `${indexPrefix}all`, `${indexPrefix}type={x}`])).toBe(1);
    }
  });

  it('different entities are spread', () => {
    expect(slots([organizationId, id].flatMap((one) => strings(entityKeys('organization', one, one))))).toBe(2);
  });
});

it('what is known of read models as a whole is in one slot, for each of their versions', () => {
  for (const keys of [PROJECTION_KEYS, projectionKeys(1)]) expect(slots(strings(keys))).toBe(1);
});
