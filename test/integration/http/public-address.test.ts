/** Addresses that replies name: those of `PUBLIC_URL`, or what a trusted proxy forwards; never what anyone else says. */
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';

import { parseConfig } from '#libs/platform/config/index.ts';
import { buildGateway, type Gateway } from '#services/gateway/role.ts';
import { start as startRealtime } from '#services/realtime/role.ts';
import { DocumentsApi } from '#test/support/documents-api.ts';
import { eventually } from '#test/support/eventually.ts';
import { roleContext } from '#test/support/role-context.ts';

const TUS = { 'tus-resumable': '1.0.0' };

let api: DocumentsApi;
let mediaId: string;
let channelId: string;
const running: { stop(): Promise<void> }[] = [];

beforeAll(async () => {
  api = await DocumentsApi.start();
  const url = '/api/v1/media/uploads?name=a.txt';
  mediaId = (await api.call('POST', url, Buffer.from('A text.'), { 'content-type': 'text/plain' })).json.id;
  await eventually(async () => {
    expect((await api.call('GET', `/api/v1/media/${mediaId}`)).json.status).toBe('Ready');
  });
  channelId = (await api.call('POST', '/api/v1/channels', { name: 'C' })).json.id;
});
afterAll(async () => {
  for (const one of running.toReversed()) await one.stop();
  await api?.stop();
});

/** @returns the port of a new gateway; one of them may have sockets */
async function startGateway(variables: Record<string, string>, { hasSockets = false } = {}): Promise<number> {
  const config = parseConfig({ PORT: '0', ...variables });
  const context = roleContext(api.api.stores.platform, api.api.stores.config);
  const gateway: Gateway = await buildGateway(context, config);
  running.push(gateway);
  if (hasSockets) running.push(await startRealtime(context, config));
  return Number(new URL(await gateway.server.listen({ host: '127.0.0.1', port: 0 })).port);
}

interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

async function send(port: number, method: string, path: string, headers: Record<string, string> = {}): Promise<Reply> {
  const all = { authorization: api.api.rootKey, ...headers };
  const request = httpRequest({ host: '127.0.0.1', port, method, path, headers: all }).end();
  const [answer] = await once(request, 'response');
  return { status: answer.statusCode, headers: answer.headers, body: await text(answer) };
}

/** What the replies to requests with these headers name. */
async function named(port: number, headers: Record<string, string>, prefix = '') {
  const media = JSON.parse((await send(port, 'GET', `${prefix}/api/v1/media/${mediaId}`, headers)).body);
  const begun = await send(port, 'POST', `${prefix}/api/v1/media/uploads`, {
    ...TUS,
    ...headers,
    'upload-length': '4',
    'content-length': '0',
  });
  const document = JSON.parse((await send(port, 'GET', `${prefix}/openapi.json`, headers)).body);
  return {
    files: media.file_url.replace(/\/[^/]+$/, ''),
    uploads: String(begun.headers['location']).replace(/\/[^/]+$/, ''),
    servers: document.servers,
    entry: JSON.parse((await send(port, 'GET', `${prefix}/`, headers)).body).documentation,
  };
}

const FORWARDED = {
  host: 'gateway-1:8080',
  'x-forwarded-proto': 'https',
  'x-forwarded-host': 'api.example.com',
  'x-forwarded-prefix': '/parley',
};

describe('with a configured address', () => {
  const configured = {
    files: 'https://example.com/parley/api/v1/media/files',
    uploads: 'https://example.com/parley/api/v1/media/uploads',
    servers: [{ url: 'https://example.com/parley' }],
    entry: 'https://example.com/parley/docs',
  };
  let port: number;
  beforeAll(async () => {
    port = await startGateway(
      { PUBLIC_URL: 'https://example.com/parley/', TRUST_PROXY: '127.0.0.1' },
      { hasSockets: true },
    );
  });

  it('replies name it, whether or not the proxy removes the prefix', async () => {
    expect(await named(port, {})).toEqual(configured);
    expect(await named(port, FORWARDED)).toEqual(configured);
    expect(await named(port, {}, '/parley')).toEqual(configured);
    expect((await send(port, 'GET', '/parley/nothing')).status).toBe(404);
    expect((await send(port, 'PUT', '/parley/api/v1/channels')).headers['allow']).toContain('POST');
  });

  it.each(['', '/parley'])('a websocket opens from its own origin, under the prefix %j', async (prefix) => {
    const ticket = JSON.parse((await send(port, 'POST', `/api/v1/channels/${channelId}/websocket_ticket`)).body).value;
    const path = `${prefix}/api/v1/channels/${channelId.toUpperCase()}/websocket`;
    const origin = 'https://example.com:443';
    const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, ['parley.v1', `ticket.${ticket}`], { origin });
    const [frame] = await once(socket, 'message');
    expect(JSON.parse(String(frame))).toMatchObject({ frame: 'hello' });
    socket.close();
  });
});

describe('without one', () => {
  const own = (base: string, prefix = '') => ({
    files: `${base}${prefix}/api/v1/media/files`,
    uploads: `${prefix}/api/v1/media/uploads`,
    servers: [{ url: prefix || '/' }],
    entry: `${prefix}/docs`,
  });

  it('replies name what a trusted proxy forwards, if that is well-formed', async () => {
    const port = await startGateway({ TRUST_PROXY: '127.0.0.1' });
    expect(await named(port, FORWARDED)).toEqual(own('https://api.example.com', '/parley'));
    const junk = {
      'x-forwarded-proto': 'javascript',
      'x-forwarded-host': '"<',
      'x-forwarded-prefix': '//evil.example',
    };
    expect(await named(port, { ...FORWARDED, ...junk })).toEqual(own('http://gateway-1:8080'));
  });

  it('replies name the host of the request, if that is well-formed', async () => {
    const port = await startGateway({});
    expect(await named(port, FORWARDED)).toEqual(own('http://gateway-1:8080'));
    expect(await named(port, { host: '"><script>' })).toEqual(own(`http://127.0.0.1:${port}`));
  });

  it('the documentation page works below any prefix, and with any host', async () => {
    const port = await startGateway({});
    const moved = await send(port, 'GET', '/docs');
    expect([moved.status, moved.headers['location']]).toEqual([301, 'docs/']);
    const page = await send(port, 'GET', '/docs/', { host: '"><script>' });
    expect(page.status).toBe(200);
    expect(page.body).toContain('../openapi.json');
    expect(page.body).not.toMatch(/(src|href)="\//);
  });
});

describe('OPTIONS of resumable uploads', () => {
  it.each([{}, { CORS_ORIGINS: 'https://app.example.com' }])('says what is supported, with %o', async (variables) => {
    const port = await startGateway(variables);
    for (const path of ['/api/v1/media/uploads', '/api/v1/media/uploads/00000000-0000-4000-8000-000000000000']) {
      const { status, headers } = await send(port, 'OPTIONS', path, { authorization: 'none' });
      expect(status).toBe(204);
      expect(headers).toMatchObject({
        'tus-resumable': '1.0.0',
        'tus-version': '1.0.0',
        'tus-extension': 'creation,expiration,termination',
        'tus-max-size': `${100 * 1024 * 1024}`,
      });
    }
    expect((await send(port, 'OPTIONS', '/api/v1/channels')).status).toBe(variables.CORS_ORIGINS ? 404 : 405);
    if (!variables.CORS_ORIGINS) return;
    const preflight = await send(port, 'OPTIONS', '/api/v1/media/uploads', {
      origin: variables.CORS_ORIGINS,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,tus-resumable,upload-length',
    });
    expect(preflight.headers).toMatchObject({ 'access-control-allow-origin': variables.CORS_ORIGINS });
  });
});
