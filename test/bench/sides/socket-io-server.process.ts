/**
 * socket.io with its defaults, which emits the same event to all sockets; without pings, which would disturb the
 * measurement.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';

import { Server } from 'socket.io';

import { answerTasks } from '../child-process.ts';
import { type FrameServerAnswer, type FrameServerTask, listenForTriggers, portOf } from './frame-server.ts';

answerTasks<FrameServerTask, FrameServerAnswer>(async ({ frame }) => {
  const http = createServer();
  const io = new Server(http, { transports: ['websocket'], pingInterval: 1_000_000, serveClient: false });
  const { seq, type, at, data } = JSON.parse(frame) as Record<string, unknown>;
  http.listen(0, '127.0.0.1', 1024);
  await once(http, 'listening');
  // Its adapter serialises each event once; Parley does so once per event and sender.
  const triggerPort = await listenForTriggers(() => void io.emit('event', { seq, type, at, data }));
  return { port: portOf(http.address()), triggerPort };
});
