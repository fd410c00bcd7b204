/** A real headless browser, and a server for the pages that it shows. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, normalize } from 'node:path';

import { type Browser, chromium } from 'playwright-core';

import { ensureChromium } from './chromium.mjs';

/** Keeps Chromium from making requests of its own. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Installs Chromium where it is missing, which takes a while. */
export function startChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: ensureChromium(), headless: true, args: FLAGS });
}

export interface PageServer {
  /** Two names of this server, which a browser treats as two origins. */
  readonly origins: readonly [string, string];
  stop(): Promise<void>;
}

export interface PageServerParts {
  /** The page, at `/`. */
  readonly page: string;
  /** Folders of scripts, by the first segment of the path. */
  readonly folders: Readonly<Record<string, string>>;
  /** JSON answers of the page's backend, by the first segment of the path. */
  readonly backend?: Readonly<Record<string, (rest: string) => Promise<unknown>>>;
}

export async function startPageServer({ page, folders, backend = {} }: PageServerParts): Promise<PageServer> {
  const server = createServer((request, response) => {
    const [, first = '', ...others] = normalize(new URL(request.url ?? '/', 'http://page').pathname).split('/');
    const folder = folders[first];
    const answer = async (): Promise<readonly [string, string | Buffer]> => {
      if (first === '') return ['text/html', page];
      if (folder !== undefined) return ['text/javascript', await readFile(join(folder, ...others))];
      return ['application/json', JSON.stringify(await backend[first]?.(others.join('/')))];
    };
    answer().then(
      ([type, body]) => response.writeHead(200, { 'content-type': type }).end(body),
      () => response.writeHead(404).end(),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    origins: [`http://127.0.0.1:${port}`, `http://localhost:${port}`],
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
