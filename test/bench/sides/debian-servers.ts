/** `nats-server` and `nchan` (of nginx) from Debian's packages, as servers of the same frame to the same sockets. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';

import { freePort } from '#infra/private-redis/free-port.ts';
import { eventually } from '#test/support/eventually.ts';

import type { SocketRequest } from '../load/sockets.ts';
import type { SocketServer } from '../socket-fixture.ts';

const SUBJECT = 'c';

/** A server in a folder with its unpacked packages. */
export interface DebianServer {
  readonly packages: readonly string[];
  /** A folder outside that it writes to, whatever its configuration is. */
  readonly writesTo?: string;
  /** @param frame text of each event */
  start(folder: string, frame: string): Promise<SocketServer>;
}

/**
 * Its frames over websockets are a stream of its protocol: each event has a line `MSG c 1 <length>` before it and a line
 * break after it, and one websocket frame may contain several.
 */
const natsServer: DebianServer = {
  packages: ['nats-server'],
  async start(folder, frame) {
    const [port, triggerPort] = [await freePort(), await freePort()];
    const config = join(folder, 'nats.conf');
    const length = Buffer.byteLength(frame);
    // By default it sends pings every two minutes.
    await writeFile(
      config,
      `listen: 127.0.0.1:${triggerPort}\nping_interval: "1h"\nwebsocket { listen: "127.0.0.1:${port}", no_tls: true }\n`,
    );
    return startServer(join(folder, 'usr/sbin/nats-server'), ['-c', config], {
      port,
      request: {
        path: '/',
        greeting: `CONNECT {"verbose":false}\r\nSUB ${SUBJECT} 1\r\nPING\r\n`,
      },
      messageBytes: Buffer.byteLength(`MSG ${SUBJECT} 1 ${length}\r\n${frame}\r\n`),
      // INFO at once, and PONG, which follows the subscription.
      framesFirst: 2,
      trigger: {
        port: triggerPort,
        preface: 'CONNECT {"verbose":false}\r\n',
        text: `PUB ${SUBJECT} ${length}\r\n${frame}\r\n`,
      },
    });
  },
};

/** With its defaults: a channel keeps the newest ten messages, with which a subscriber begins. */
const nchan: DebianServer = {
  packages: ['nginx', 'libnginx-mod-nchan'],
  writesTo: '/var/lib/nginx',
  async start(folder, frame) {
    const port = await freePort();
    const config = join(folder, 'nginx.conf');
    await mkdir(join(folder, 'logs'), { recursive: true });
    await writeFile(config, nginxConfig(folder, port));
    const post = `POST /publish HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${Buffer.byteLength(frame)}\r\n\r\n${frame}`;
    const server = await startServer(join(folder, 'usr/sbin/nginx'), ['-p', folder, '-c', config], {
      port,
      request: { path: '/subscribe' },
      framesFirst: 1,
      trigger: { port, preface: '', text: post },
    });
    // The message that shows a subscriber that it is subscribed.
    const first = await fetch(`http://127.0.0.1:${port}/publish`, { method: 'POST', body: frame });
    if (!first.ok) throw new Error(`nchan refused a message: ${first.status}`);
    return server;
  },
};

export const DEBIAN_SERVERS = { 'nats-server': natsServer, nchan } as const satisfies Record<string, DebianServer>;

/** Their defaults are folders of an installed nginx. */
const TEMPORARY = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

const nginxConfig = (folder: string, port: number): string => `
daemon off;
worker_processes 1;
worker_rlimit_nofile 16384;
user root;
pid ${folder}/nginx.pid;
error_log stderr error;
load_module ${folder}/usr/lib/nginx/modules/ngx_nchan_module.so;
events { worker_connections 8192; }
http {
  access_log off;
  keepalive_requests 1000000000;
  ${TEMPORARY.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}
  server {
    listen 127.0.0.1:${port} backlog=1024;
    location = /publish { nchan_publisher; nchan_channel_id ${SUBJECT}; }
    location = /subscribe { nchan_subscriber websocket; nchan_channel_id ${SUBJECT}; }
  }
}
`;

async function startServer(
  program: string,
  args: readonly string[],
  { request, ...server }: Omit<SocketServer, 'pid' | 'requests' | 'stop'> & { readonly request: SocketRequest },
): Promise<SocketServer> {
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let errors = '';
  child.stderr.on('data', (text: Buffer) => void (errors = `${errors}${text.toString()}`.slice(-2_000)));
  const exit = once(child, 'exit');
  await eventually(async () => {
    if (child.exitCode !== null) throw new Error(`${program} ended: ${errors}`);
    const socket = connect(server.port, '127.0.0.1');
    await once(socket, 'connect').finally(() => socket.destroy());
  });
  return {
    ...server,
    pid: child.pid ?? 0,
    requests: async (count) => Array.from({ length: count }, () => request),
    async stop() {
      child.kill('SIGTERM');
      await exit;
    },
  };
}
