import { z } from 'zod';

import { EntityReplies, type RejectionErrors } from '#libs/platform/entity/index.ts';
import {
  commandContext,
  conflict,
  eventStreamQuery,
  eventStreamResponse,
  type HttpApp,
  idParam,
  pageMetaSchema,
  pageQuery,
  queryBoolean,
  text,
} from '#libs/platform/http/index.ts';

import { type Notes, noteSchema } from './note.read.ts';
import { decideRewrite, type NoteRejection } from './note.ts';

const body = z.object({ text: text({ min: 1, max: 10_000, description: 'Text of the note' }) });
const params = z.object({ id: idParam('Id of the note') });
const listQuery = z.object({
  ...pageQuery,
  is_answered: queryBoolean({ description: 'Only notes that are answered, or that are not' }).optional(),
});
const eventsQuery = z.object(eventStreamQuery);
const pageSchema = z.object({ items: z.array(noteSchema), meta: pageMetaSchema }).meta({ id: 'NotePage' });

const errors: RejectionErrors<NoteRejection> = {
  answered: () => conflict('The note is answered and no longer changes', 'answered'),
};

const tags = ['notes'];
const read = { scope: 'read' };
const write = { scope: 'write' };
const response = { 200: noteSchema };

export function noteRoutes(app: HttpApp, notes: Notes): void {
  const replies = new EntityReplies(notes, errors);
  const list = { operationId: 'listNotes', tags, querystring: listQuery, response: { 200: pageSchema } };

  app.get('/api/v1/notes', { config: read, schema: list }, (request, reply) => {
    const { is_answered } = request.query;
    return replies.sendPage(request, reply, request.principal.organizationId, { is_answered });
  });

  app.get(
    '/api/v1/notes/:id',
    { config: read, schema: { operationId: 'getNote', tags, params, response } },
    (request, reply) => replies.sendOne(request, reply, request.principal.organizationId, request.params.id),
  );

  app.get(
    '/api/v1/notes/:id/events',
    {
      config: read,
      schema: {
        operationId: 'streamNoteEvents',
        tags,
        params,
        querystring: eventsQuery,
        response: eventStreamResponse,
      },
    },
    (request, reply) => replies.sendEvents(request, reply, request.principal.organizationId, request.params.id),
  );

  app.post(
    '/api/v1/notes',
    { config: write, schema: { operationId: 'createNote', tags, body, response } },
    async (request, reply) => {
      const context = commandContext(request);
      const note = { id: context.commandId, text: request.body.text };
      return replies.sendResult(
        request,
        reply,
        await notes.create(context, note.id, { type: 'NoteCreated.v1', data: note }),
      );
    },
  );

  app.patch(
    '/api/v1/notes/:id',
    { config: write, schema: { operationId: 'updateNote', tags, params, body, response } },
    async (request, reply) => {
      const { text } = request.body;
      const result = await notes.update(commandContext(request), request.params.id, (note) =>
        decideRewrite(note, text),
      );
      return replies.sendResult(request, reply, result);
    },
  );
}
