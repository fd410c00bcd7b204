import { describe, expect, it } from 'vitest';
import { z } from 'zod';

import { changedBy, createdBy, type EntityState } from '#libs/kernel/entity.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';
import { conflict } from '#libs/platform/http/index.ts';
import { entityKeys } from '#libs/platform/readmodel/index.ts';
import { stateAfter } from '#test/support/log-events.ts';

import { entity, facetsOfFilter } from './entity.ts';
import type { RejectionErrors } from './entity-replies.ts';

const codec = defineEvents({
  'TaskCreated.v1': z.object({ id: z.string(), tags: z.array(z.string()) }),
  'TaskEnded.v1': z.object({}),
  'TaskForbidden.v1': z.object({}),
  'TaskDeleted.v1': z.object({}),
});
type TaskEvent = EventOf<typeof codec>;
type Task = EntityState & { readonly tags: readonly string[]; readonly isOpen: boolean };
type TaskFacets = { readonly is_open: boolean; readonly tag: readonly string[]; readonly owner: string | null };
type TaskState = Task | 'forbidden' | null;

const declaration: Parameters<typeof entity<TaskState, TaskEvent, TaskFacets>>[0] = {
  category: 'task',
  version: 1,
  codec,
  fold: {
    initialState: null,
    evolve(state, event) {
      if (event.type === 'TaskForbidden.v1') return 'forbidden';
      if (event.type === 'TaskCreated.v1') return { ...event.data, ...createdBy(event), isOpen: true };
      if (typeof state !== 'object' || state === null) return state;
      const changed = { ...state, ...changedBy(event) };
      return event.type === 'TaskDeleted.v1'
        ? { ...changed, deletedAt: changed.modified }
        : { ...changed, isOpen: false };
    },
  },
  resource: ({ id, isOpen }) => ({ id, is_open: isOpen }),
  facets: ({ isOpen, tags }) => ({ is_open: isOpen, tag: tags, owner: null }),
};

const created: TaskEvent = { type: 'TaskCreated.v1', data: { id: 'task-1', tags: ['a', 'b'] } };
const ended: TaskEvent = { type: 'TaskEnded.v1', data: {} };
const deleted: TaskEvent = { type: 'TaskDeleted.v1', data: {} };
const forbidden: TaskEvent = { type: 'TaskForbidden.v1', data: {} };
const keys = entityKeys(declaration, 'organization-1', 'task-1');

function writesAfter(events: readonly TaskEvent[], options: { readonly isTenant?: boolean } = {}) {
  const { projection } = entity({ ...declaration, ...options });
  const run = { organizationId: 'organization-1', id: 'task-1', before: null, events: [] };
  return projection.project({ ...run, after: stateAfter(projection.fold, events) }, keys);
}

describe('an entity', () => {
  it('has a document, and an entry with its facets in the list of its organization', () => {
    const member = '2026-01-31T12:00:00.000Z_task-1';
    expect(writesAfter([created, ended])).toEqual({
      operations: [{ command: 'SET', key: keys.document, args: ['1\n{"id":"task-1","is_open":false}'] }],
      lists: [{ owner: 'organization-1', member, facets: ['all', 'is_open=false', 'tag=a', 'tag=b'], revision: 1 }],
    });
  });

  it('has neither before it is created, nor in a state that is no entity', () => {
    for (const events of [[], [forbidden]]) {
      expect(writesAfter(events)).toEqual({ operations: [], lists: [] });
    }
  });

  it('has neither any more after it is deleted, also if its creation was never projected', () => {
    expect(writesAfter([created, deleted])).toEqual({
      operations: [{ command: 'DEL', key: keys.document, args: [] }],
      lists: [{ owner: 'organization-1', member: '2026-01-31T12:00:00.000Z_task-1', facets: [], revision: 1 }],
    });
  });

  it('that is an organization is in the one list of all of them', () => {
    const { lists } = writesAfter([created], { isTenant: true });
    expect(lists).toMatchObject([{ owner: 'all' }]);
  });

  it('is found by the facets of a filter, or without a filter by the one that all have', () => {
    expect(facetsOfFilter({ is_open: true, tag: 'a', owner: undefined })).toEqual(['is_open=true', 'tag=a']);
    expect(facetsOfFilter({ tag: undefined })).toEqual(['all']);
  });

  it('has facets without spaces, which differ where the values differ', () => {
    const tags = ['a b', 'a%20b', 'Failed:\twhy', 'größer'];
    const [list] = writesAfter([{ type: 'TaskCreated.v1', data: { id: 'task-1', tags } }]).lists;
    const expected = ['tag=a%20b', 'tag=a%2520b', 'tag=Failed:%09why', 'tag=größer'];
    expect(list?.facets).toEqual(['all', 'is_open=true', ...expected]);
    expect(tags.flatMap((tag) => facetsOfFilter({ tag }))).toEqual(expected);
  });

  it('has an error for every reason of its rejections, or does not compile', () => {
    type Rejection = { readonly reason: 'ended' } | { readonly reason: 'late'; readonly by: number };
    const late = ({ by }: { readonly by: number }) => conflict(`late by ${by}`);
    const complete: RejectionErrors<Rejection> = { ended: () => conflict('ended'), late };
    // @ts-expect-error: `ended` has no error
    const incomplete: RejectionErrors<Rejection> = { late };
    expect(Object.keys({ ...complete, ...incomplete })).toHaveLength(2);
  });
});
