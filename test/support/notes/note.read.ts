import { z } from 'zod';

import { type Entities, entity } from '#libs/platform/entity/index.ts';
import type { EventDescription } from '#libs/platform/live/index.ts';

import { type Note, noteCodec, type NoteEvent, noteFold, type NoteState } from './note.ts';

export const noteSchema = z
  .object({ id: z.string(), text: z.string(), answer: z.string().nullable(), created_at: z.string() })
  .meta({ id: 'Note' });

const resource = ({ id, text, answer, createdAt }: Note) => ({ id, text, answer, created_at: createdAt });

export const noteEntity = entity({
  category: 'note',
  version: 1,
  codec: noteCodec,
  fold: noteFold,
  resource,
  facets: (note) => ({ is_answered: note.answer !== null }),
  isEnded: (note) => note.answer !== null,
  frame: ({ after, event }) => ({
    type: event.type === 'NoteCreated.v1' ? 'note.created' : 'note.changed',
    json: JSON.stringify(after && resource(after)),
  }),
});

export type Notes = Entities<NoteState, NoteEvent, { readonly is_answered: boolean }>;

export const noteLiveEvents: readonly EventDescription[] = [
  { type: 'note.created', summary: 'The note was created', data: noteSchema },
  { type: 'note.changed', summary: 'The note was rewritten or answered', data: noteSchema },
];
