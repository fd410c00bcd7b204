import { expect, test } from 'vitest';

import { foldEvents } from '#libs/kernel/decider.ts';
import { type StreamEvent, streamRevision } from '#libs/kernel/event.ts';

import { interactionFold } from '../interaction.ts';
import type { InteractionEvent } from '../interaction.events.ts';
import { channelKeys } from '../../channel.keys.ts';
import { interactionWrites } from './projection.ts';

const owner = { organizationId: 'org', channelId: '019aa5b0-0000-7000-8000-000000000001' };

function at(revision: number, event: InteractionEvent): StreamEvent<InteractionEvent> {
  return {
    ...event,
    id: `event ${revision}`,
    revision: streamRevision(revision),
    metadata: {
      at: '2026-01-01T00:00:00.000Z',
      organizationId: owner.organizationId,
      actor: { type: 'service', id: 'robot' },
      commandId: 'command',
      $correlationId: 'command',
      $causationId: 'command',
    },
  };
}

const begun: InteractionEvent = {
  type: 'InteractionPosted.v1',
  data: {
    participant: { type: 'agent' },
    content: [],
    contentRole: 'agent_response',
    complete: false,
    metadata: null,
    invocationConfig: null,
    turnId: 'turn',
    spanId: 'span',
    parentSpanId: null,
    depth: 1,
    organizationApplication: null,
  },
};
const completed: InteractionEvent = {
  type: 'InteractionCompleted.v2',
  data: { sequence: 2, content: null, metadata: null, invocationConfig: null },
};

test.each([
  ['in separate runs', [[at(1, begun)], [at(2, completed)]]],
  ['in one run, as after a rebuild', [[at(1, begun), at(2, completed)]]],
])(
  'a completed interaction is removed from the index of incomplete ones, also of an earlier build: %s',
  (_how, runs) => {
    const keys = channelKeys(owner.organizationId, owner.channelId);
    const incomplete = keys.index('incomplete');
    // Written by another process before.
    const members = new Set([2]);
    let state = interactionFold.initialState;
    for (const events of runs) {
      const after = foldEvents(interactionFold, state, events);
      for (const { command, key, args } of interactionWrites(events, state, owner, keys)) {
        if (key !== incomplete) continue;
        if (command === 'ZADD') members.add(Number(args[1]));
        if (command === 'ZREM') members.delete(Number(args[0]));
      }
      state = after;
    }
    expect([...members]).toEqual([]);
  },
);

const deleted: InteractionEvent = {
  type: 'InteractionDeleted.v1',
  data: {
    sequence: 2,
    interaction: {
      participant: { type: 'agent' },
      content: [],
      contentRole: 'agent_response',
      metadata: null,
      invocationConfig: null,
      turnId: 'turn',
      spanId: 'span',
      parentSpanId: null,
      organizationApplication: null,
      createdAt: '2026-01-01T00:00:00.000Z',
    },
  },
};

test('an interaction that was begun, completed and deleted in one run, as after a rebuild, stays deleted', () => {
  const keys = channelKeys(owner.organizationId, owner.channelId);
  const events = [at(1, begun), at(2, completed), at(3, deleted)];
  const writes = interactionWrites(events, interactionFold.initialState, owner, keys);
  const documents = writes.filter(({ key, args }) => key === keys.documents && args[0] === 2);
  expect(JSON.parse(String(documents.at(-1)?.args[1]))).toHaveProperty('deleted_at');
  expect(writes.findLast(({ key }) => key === keys.messages)).toMatchObject({ command: 'ZREM', args: [2] });
});
