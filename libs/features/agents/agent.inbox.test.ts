import { describe, expect, it } from 'vitest';

import { describeStoredEvents } from '#test/support/event-samples.ts';
import { logMetadata, stateAfter } from '#test/support/log-events.ts';

import {
  decideDeliver,
  decideEnd,
  type DeliveredInvocation,
  inboxCodec,
  type InboxEvent,
  inboxFold,
  MAX_UNANSWERED,
} from './agent.inbox.ts';
import samples from './inbox.events.samples.json' with { type: 'json' };

describeStoredEvents('inboxes of agents', inboxCodec, samples);

const agentId = 'agent-1';
const invocation = (runId: string): DeliveredInvocation => ({ ...samples['InvocationDelivered.v1'], runId });
const opened: InboxEvent = { type: 'InboxOpened.v1', data: { id: agentId } };
const delivered = (runId: string): InboxEvent => ({ type: 'InvocationDelivered.v1', data: invocation(runId) });
const end = (runId: string) => ({ runId, agentId, status: 'cancelled', reason: null }) as const;
const ended = (runId: string): InboxEvent => ({ type: 'InvocationEnded.v1', data: end(runId) });
const full = [opened, ...Array.from({ length: MAX_UNANSWERED }, (_, n) => delivered(`run-${n}`))];
const nothing = { ok: true, events: [] };

/** @param minutes from the events until the delivery */
function deliver(events: readonly InboxEvent[], runId = 'next', minutes = 0) {
  const at = new Date(Date.parse(logMetadata('any').at) + minutes * 60_000).toISOString();
  return decideDeliver(stateAfter(inboxFold, events), { agentId, invocation: invocation(runId), at });
}

describe('the inbox of an agent', () => {
  it('is opened by its first invocation, and gets each run once', () => {
    expect(deliver([])).toEqual({ ok: true, events: [opened, delivered('next')] });
    expect(deliver([opened])).toEqual({ ok: true, events: [delivered('next')] });
    expect(deliver([opened, delivered('next')])).toEqual(nothing);
    expect(deliver([opened, delivered('next'), ended('next')])).toEqual(nothing);
  });

  it('gets a run once that is still open after many later ones', () => {
    const later = Array.from({ length: 200 }, (_, n) => [delivered(`later-${n}`), ended(`later-${n}`)]).flat();
    expect(deliver([opened, delivered('next'), ...later])).toEqual(nothing);
  });

  it('takes no more runs than the agent may leave unanswered', () => {
    expect(deliver(full)).toEqual({ ok: false, rejection: { reason: 'busy' } });
    expect(deliver(full, 'run-7')).toEqual(nothing);
    expect(deliver([...full, ended('run-7')])).toEqual({ ok: true, events: [delivered('next')] });
    expect(deliver([...full, ended('run-7'), delivered('run-x')])).toMatchObject({ ok: false });
  });

  it('does not count runs whose end was never recorded, once they must have ended', () => {
    expect(deliver(full, 'next', 14)).toMatchObject({ ok: false });
    expect(deliver(full, 'next', 15)).toEqual({ ok: true, events: [delivered('next')] });
  });

  it('tells the end of each run that was delivered, once', () => {
    const state = (...events: InboxEvent[]) => stateAfter(inboxFold, events);
    expect(decideEnd(state(opened, delivered('a')), end('a'))).toEqual({ ok: true, events: [ended('a')] });
    expect(decideEnd(state(opened, delivered('a'), ended('a')), end('a'))).toEqual(nothing);
    expect(decideEnd(state(opened), end('a'))).toEqual(nothing);
    expect(decideEnd(null, end('a'))).toEqual(nothing);
  });
});
