import { z } from 'zod';

import { shownFields } from '#libs/kernel/fields.ts';
import { type Entities, entity } from '#libs/platform/entity/index.ts';
import type { EventDescription } from '#libs/platform/live/index.ts';

import { type Note, noteCodec, type NoteEvent, noteFold, type NoteState } from './note.ts';

const noteFields = shownFields<Note>()({
  id: z.string(),
  text: z.string(),
  answer: z.string().nullable(),
  created_at: z.string(),
});
export const noteSchema = z.object(noteFields.shape).meta({ id: 'Note' });

export const noteEntity = entity({
  category: 'note',
  version: 1,
  codec: noteCodec,
  fold: noteFold,
  resource: noteFields.resource,
  facets: (note) => ({ is_answered: note.answer !== null }),
  isEnded: (note) => note.answer !== null,
  frame: ({ event }) => (event.type === 'NoteCreated.v1' ? 'note.created' : 'note.changed'),
});

export type Notes = Entities<NoteState, NoteEvent, { readonly is_answered: boolean }>;

export const noteLiveEvents: readonly EventDescription[] = [
  { type: 'note.created', summary: 'The note was created', data: noteSchema },
  { type: 'note.changed', summary: 'The note was rewritten or answered', data: noteSchema },
];
