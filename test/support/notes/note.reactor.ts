import { reactor } from '#libs/platform/reactors/index.ts';

import { noteEntity } from './note.read.ts';
import type { NoteEvent, NoteState } from './note.ts';

/** Port: an outside system that answers questions; it recognises a repeated question by its key. */
export type Answer = (question: string, idempotencyKey: string) => Promise<string>;

/** Answers each new note. */
export function noteAnswers(answer: Answer) {
  return reactor<NoteState, NoteEvent>({
    name: 'note-answers',
    on: ['NoteCreated.v1'],
    process: noteEntity.projection,
    isEnded: (note) => note !== null && note.answer !== null,
    async handle(_event, { state, idempotencyKey }) {
      if (state === null) return [];
      return [{ type: 'NoteAnswered.v1', data: { answer: await answer(state.text, idempotencyKey()) } }];
    },
    giveUp: (_note, { reason }) => [{ type: 'NoteAnswered.v1', data: { answer: `No answer (${reason})` } }],
  });
}
