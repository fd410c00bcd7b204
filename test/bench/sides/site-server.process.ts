/** A website on loopback: the pages of a folder, below pages of links and a start page. */
import { readFileSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { answerTasks } from '../child-process.ts';
import type { SiteAnswer, SiteTask } from '../crawl.benchmark.ts';

/** Of one page: a crawl follows few hundred of each. */
const LINKS = 100;

answerTasks(async ({ folder, pages, delayMs }: SiteTask): Promise<SiteAnswer> => {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const chosen = names.filter((name) => name.endsWith('.html')).sort();
  const paths = chosen.slice(0, pages).map((name) => `/${name}`);
  const contents = new Map<string, Buffer>(paths.map((path) => [path, readFileSync(join(folder, path))]));
  const lists: string[] = [];
  for (let at = 0; at < paths.length; at += LINKS) {
    lists.push(`/list-${lists.length}.html`);
    contents.set(lists.at(-1)!, linksTo(paths.slice(at, at + LINKS)));
  }
  contents.set('/', linksTo(lists));
  const server = createServer((request, response) => {
    const body = contents.get(decodeURI(request.url ?? ''));
    const send = (): void => {
      response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'text/html; charset=utf-8' }).end(body);
    };
    if (delayMs === 0) send();
    else void pause(delayMs).then(send);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as AddressInfo).port, paths: ['/', ...lists, ...paths] };
});

function linksTo(paths: readonly string[]): Buffer {
  const links = paths.map((path) => `<li><a href="${path}">${path}</a></li>`);
  return Buffer.from(`<title>${paths[0]} and more</title><main><ul>${links.join('\n')}</ul></main>`);
}
