/*
 * Event names and shapes are the storage format: what was written with them stays in the log for ever.
 * Never change one in place. A new version is a new type, and the old one gets an upcaster.
 */
import { z } from 'zod';

import { accept, type Decision, type Fold, refuse } from '#libs/kernel/decider.ts';
import { changedBy, createdBy, type EntityState } from '#libs/kernel/entity.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';

export const noteCodec = defineEvents({
  'NoteCreated.v1': z.object({ id: z.string(), text: z.string() }),
  'NoteRewritten.v1': z.object({ text: z.string() }),
  'NoteAnswered.v1': z.object({ answer: z.string() }),
});

export type NoteEvent = EventOf<typeof noteCodec>;
export type Note = EntityState & { readonly text: string; readonly answer: string | null };
/** `null` until the note is created. */
export type NoteState = Note | null;

export const noteFold: Fold<NoteState, NoteEvent> = {
  initialState: null,
  evolve(state, event) {
    if (event.type === 'NoteCreated.v1') return { ...event.data, ...createdBy(event), answer: null };
    return state && { ...state, ...event.data, ...changedBy(event) };
  },
};

export type NoteRejection = { readonly reason: 'answered' };

export function decideRewrite(note: Note, text: string): Decision<NoteEvent, NoteRejection> {
  if (note.text === text) return accept();
  if (note.answer !== null) return refuse({ reason: 'answered' });
  return accept({ type: 'NoteRewritten.v1', data: { text } });
}
