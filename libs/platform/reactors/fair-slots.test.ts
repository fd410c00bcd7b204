import { expect, it } from 'vitest';

import { FairSlots, type SlotLimits, type SlotUse } from './fair-slots.ts';

interface Item {
  readonly name: string;
  readonly use: SlotUse;
}

/** The first letter of the name is the organization. */
function item(name: string, use: Partial<SlotUse> = {}): Item {
  return { name, use: { lane: '', organizationId: name.slice(0, 1), resource: null, processId: name, ...use } };
}

function slotsOf(limits: Partial<SlotLimits>, items: readonly Item[]): FairSlots<Item> {
  const slots = new FairSlots<Item>({ concurrency: 4, perOrganization: 2, perResource: Infinity, ...limits });
  for (const one of items) slots.add(one);
  return slots;
}

/** Those that start until none may start any more. */
function started(slots: FairSlots<Item>): Item[] {
  const items: Item[] = [];
  for (let next = slots.take(); next !== undefined; next = slots.take()) items.push(next);
  return items;
}
const names = (items: readonly Item[]): string => items.map(({ name }) => name).join(' ');

it('lets organizations take turns, and leaves slots to others', () => {
  const slots = slotsOf(
    {},
    ['a1', 'a2', 'a3', 'a4', 'a5'].map((name) => item(name)),
  );
  const first = started(slots);
  expect(names(first)).toBe('a1 a2');
  slots.add(item('b1'));
  slots.add(item('c1'));
  slots.add(item('d1'));
  expect(names(started(slots))).toBe('b1 c1');
  slots.release(first[0]!);
  // The one that waits goes before the one that has a slot.
  expect(names(started(slots))).toBe('d1');
  expect(slots.running).toBe(4);
});

it('runs one step of a process at a time, and others of the organization meanwhile', () => {
  const slots = slotsOf({}, [item('a1'), item('a2', { processId: 'a1' }), item('a3')]);
  const [first] = started(slots);
  slots.release(first!);
  expect(names(started(slots))).toBe('a2');
});

it('gives each lane slots of its own', () => {
  const fetches = ['a1', 'a2', 'b1', 'b2', 'c1'].map((name) => item(name, { lane: 'fetch' }));
  const slots = slotsOf({}, fetches);
  expect(names(started(slots))).toBe('a1 b1 c1 a2');
  slots.add(item('a3', { lane: 'upload' }));
  expect(names(started(slots))).toBe('a3');
});

it('bounds what an organization does with one resource, and passes over those that wait for it', () => {
  const slow = (name: string): Item => item(name, { resource: 'slow.example' });
  const slots = slotsOf({ perOrganization: 3, perResource: 1 }, [slow('a1'), slow('a2'), item('a3'), slow('b1')]);
  expect(names(started(slots))).toBe('a1 b1 a3');
});

it('forgets what is not to be started', () => {
  const items = ['a1', 'a2', 'a3'].map((name) => item(name));
  const slots = slotsOf({ perOrganization: 1 }, items);
  slots.remove(items[1]!);
  const [first] = started(slots);
  slots.release(first!);
  expect(names(started(slots))).toBe('a3');
});
