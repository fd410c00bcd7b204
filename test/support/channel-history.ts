import type { Channels } from '#libs/features/channels/index.ts';
import { derivedId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';

const NAMESPACE = '0192f5b2-3c68-7aa4-9f5c-2f5a8b0f3a11';
const BEHAVIORS = ['at_mentions_only', 'all_messages', 'all_messages_personal_agent', 'intelligent', null] as const;

/** Small deterministic generator (mulberry32): the same seed gives the same history. */
export function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** Sends random commands of every kind to channels of two organizations. */
export async function playChannels(
  channels: Channels,
  { seed, commands }: { readonly seed: number; readonly commands: number },
): Promise<void> {
  const random = randomFrom(seed);
  const ids: { id: string; organizationId: string }[] = [];
  for (let index = 0; index < commands; index++) {
    const known = ids[random(Math.max(1, ids.length))];
    const organizationId = known?.organizationId ?? `org-${random(2)}`;
    const context = contextOf(
      seed,
      index,
      known === undefined || random(6) === 0 ? `org-${random(2)}` : organizationId,
    );
    if (known === undefined || context.organizationId !== organizationId || random(8) === 0) {
      await create(channels, context, random);
      ids.push({ id: context.commandId, organizationId: context.organizationId });
    } else {
      await change(channels, context, known.id, random);
    }
  }
}

function contextOf(seed: number, index: number, organizationId: string): CommandContext {
  return {
    commandId: derivedId(NAMESPACE, `${seed}/${index}`),
    organizationId,
    actor: { type: 'service', id: 'history' },
    at: new Date(Date.UTC(2026, 0, 1) + index * 1_234).toISOString(),
  };
}

async function create(channels: Channels, context: CommandContext, random: (below: number) => number) {
  await channels.create(context, {
    id: context.commandId,
    type: 'websocket',
    channelType: random(2) === 0 ? 'chat' : 'collaboration',
    name: `Channel ${random(1_000)} – ü 🎈`,
    participants: [],
    metaData: random(2) === 0 ? null : { nested: { n: random(10), list: [1, 'two', null] } },
    source: null,
    agentInvocationBehavior: BEHAVIORS[random(BEHAVIORS.length)] ?? null,
    parentChannelId: null,
    originMessageId: null,
  });
}

async function change(channels: Channels, context: CommandContext, id: string, random: (below: number) => number) {
  const participantId = `participant-${random(5)}`;
  switch (random(6)) {
    case 0:
      return channels.update(context, id, { name: `Renamed ${random(50)}` });
    case 1:
      return channels.update(context, id, { metaData: { count: random(4) }, agentInvocationBehavior: null });
    case 2:
    case 3:
      return channels.addParticipant(context, id, { type: 'external_agent', participantId, agentMetadata: null });
    case 4:
      return channels.removeParticipant(context, id, participantId);
    default:
      return random(5) === 0 ? channels.archive(context, id) : channels.update(context, id, { name: 'Same' });
  }
}
