/**
 * The cost of a post and its frame without stores: Fastify parses the post, an emitter in the same process notifies
 * the socket, and the same bytes go out as in ours.
 */
import { EventEmitter } from 'node:events';

import Fastify from 'fastify';
import { WebSocketServer } from 'ws';

import { answerTasks } from '../child-process.ts';

export interface EmitterTask {
  /** The answer to a post, and the frame; `########` is replaced by the post's number. */
  readonly body: string;
  readonly frame: string;
}

answerTasks<EmitterTask, { url: string }>(async ({ body, frame }) => {
  const events = new EventEmitter<{ posted: [text: string] }>();
  const app = Fastify();
  app.post<{ Body: { content: { text: string }[] } }>('/api/v1/channels/:id/interactions', async (request, reply) => {
    const mark = /\d{8}/.exec(request.body.content[0]?.text ?? '')?.[0] ?? '';
    events.emit('posted', mark);
    return reply.header('content-type', 'application/json').send(body.replaceAll('########', mark));
  });
  const sockets = new WebSocketServer({ server: app.server, perMessageDeflate: false });
  sockets.on('connection', (socket) => {
    const tell = (mark: string): void => socket.send(frame.replaceAll('########', mark));
    events.on('posted', tell);
    socket.on('close', () => events.off('posted', tell));
    socket.on('error', () => undefined);
    socket.send('{"frame":"hello"}');
  });
  return { url: await app.listen({ host: '127.0.0.1', port: 0 }) };
});
