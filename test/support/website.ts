/** A website on loopback, as tests of crawls need it: pages may change, and all requests are recorded. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface PageOfSite {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array;
  /** Answers instead. */
  readonly answer?: (request: IncomingMessage, response: ServerResponse) => void;
}

export interface Website {
  /** `http://127.0.0.1:4000`, without a slash. */
  readonly origin: string;
  readonly port: number;
  /** Answered by path; anything else is 404. */
  readonly pages: Map<string, PageOfSite | string>;
  /** `GET /path`, in their order, without robots.txt. */
  readonly requests: string[];
  /** Headers of the last request by path. */
  readonly headers: Map<string, IncomingMessage['headers']>;
  stop(): Promise<void>;
}

/** An HTML page with a title, text and links. */
export function html(title: string, { text = '', links = [] as readonly string[], head = '' } = {}): string {
  const anchors = links.map((link) => `<a href="${link}">${link}</a>`).join(' ');
  const words = text === '' ? `This is the page with the title ${title}.` : text;
  return `<!doctype html><html lang="en"><head><title>${title}</title>${head}</head><body><main><h1>${title}</h1><p>${words}</p><p>${anchors}</p></main></body></html>`;
}

export async function startWebsite(pages: Record<string, PageOfSite | string> = {}): Promise<Website> {
  const site = new Map(Object.entries(pages));
  const requests: string[] = [];
  const headers = new Map<string, IncomingMessage['headers']>();
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    if (path !== '/robots.txt') requests.push(path);
    headers.set(path, request.headers);
    const page = site.get(path);
    if (page === undefined) return response.writeHead(404).end('not here');
    const { status = 200, headers: own = {}, body = '', answer } = typeof page === 'string' ? { body: page } : page;
    if (answer !== undefined) return answer(request, response);
    const etag = own['etag'];
    if (etag !== undefined && request.headers['if-none-match'] === etag) return response.writeHead(304, { etag }).end();
    return response.writeHead(status, { 'content-type': 'text/html', ...own }).end(body);
  });
  // The client ends idle connections. By default the server does, a second later, and a request that is sent meanwhile fails.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    port,
    pages: site,
    requests,
    headers,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
