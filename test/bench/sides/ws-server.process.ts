/** Bare `ws`: greets each socket with the frame, and sends it as a string to each of them for each event. */
import { once } from 'node:events';

import { WebSocketServer } from 'ws';

import { answerTasks } from '../child-process.ts';
import { type FrameServerAnswer, type FrameServerTask, listenForTriggers, portOf } from './frame-server.ts';

answerTasks<FrameServerTask, FrameServerAnswer>(async ({ frame }) => {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false, backlog: 1024 });
  server.on('connection', (socket) => {
    socket.on('error', () => undefined);
    socket.send(frame);
  });
  await once(server, 'listening');
  const triggerPort = await listenForTriggers(() => {
    for (const client of server.clients) client.send(frame);
  });
  return { port: portOf(server.address()), triggerPort };
});
