import { z } from 'zod';

import { declareReads, EntityReplies, type RejectionErrors } from '#libs/platform/entity/index.ts';
import {
  commandContext,
  conflict,
  type HttpApp,
  idParam,
  queryBoolean,
  routesTagged,
  text,
} from '#libs/platform/http/index.ts';

import { type Notes, noteSchema } from './note.read.ts';
import { decideRewrite, type NoteRejection } from './note.ts';

const body = z.object({ text: text({ min: 1, max: 10_000, description: 'Text of the note' }) });
const params = z.object({ id: idParam('Id of the note') });

const errors: RejectionErrors<NoteRejection> = {
  answered: () => conflict('The note is answered and no longer changes', 'answered'),
};

const { writes } = routesTagged('notes');
const response = { 200: noteSchema };

export function noteRoutes(app: HttpApp, notes: Notes): void {
  const replies = new EntityReplies(notes, errors);

  declareReads(app, replies, {
    path: '/api/v1/notes',
    tag: 'notes',
    params,
    schema: noteSchema,
    list: {
      operationId: 'listNotes',
      summary: 'List notes, newest first',
      filters: {
        is_answered: queryBoolean({ description: 'Only notes that are answered, or that are not' }).optional(),
      },
      facets: ({ is_answered }) => ({ is_answered }),
    },
    one: { operationId: 'getNote', summary: 'Read a note' },
    events: { operationId: 'streamNoteEvents', summary: 'Follow a note' },
  });

  app.post('/api/v1/notes', writes({ operationId: 'createNote', body, response }), async (request, reply) => {
    const context = commandContext(request);
    const note = { id: context.commandId, text: request.body.text };
    return replies.sendResult(
      request,
      reply,
      await notes.create(context, note.id, { type: 'NoteCreated.v1', data: note }),
    );
  });

  app.patch(
    '/api/v1/notes/:id',
    writes({ operationId: 'updateNote', params, body, response }),
    async (request, reply) => {
      const { text } = request.body;
      const result = await notes.update(commandContext(request), request.params.id, (note) =>
        decideRewrite(note, text),
      );
      return replies.sendResult(request, reply, result);
    },
  );
}
