/** Every way to set a URL that Parley requests later, with every form of URL that it will never request. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, startTestApi, type TestApi } from '../../support/test-api.ts';

let api: TestApi;
let agent: string;
let user: string;
beforeAll(async () => {
  api = await startTestApi();
  agent = (await send('POST', 'agents', { name: 'Hooked', runtime: 'external' })).json.id;
  user = (await send('POST', 'users', { display_name: 'Ada' })).json.id;
});
afterAll(() => api.stop());

function send(method: 'POST' | 'PATCH', path: string, body: object): Promise<Answer> {
  return api.call({ method, url: `/api/v1/${path}`, key: api.rootKey, body });
}

const REFUSED = {
  'a private address': ['http://10.0.0.1/', 'http://192.168.1.1/hook', 'https://172.16.0.1/', 'http://100.64.0.1/'],
  'an address of this machine': ['http://127.0.0.1/', 'http://0.0.0.0/', 'http://[::1]/', 'http://[::]/'],
  'an address of a cloud': ['http://169.254.169.254/latest/meta-data/', 'http://[fd00:ec2::254]/'],
  'a local name': ['http://localhost/', 'https://LOCALHOST./', 'http://api.localhost/'],
  'another notation of an address': [
    'http://2130706433/',
    'http://0x7f000001/',
    'http://0x7f.1/',
    'http://0177.0.0.1/',
    'http://127.1/',
    'http://127.0.0.1./',
    'http://①②⑦.0.0.1/',
    'http://127。0。0。1/',
    'http://%31%32%37.0.0.1/',
  ],
  'an IPv4 address in an IPv6 address': [
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:a00:1]/',
    'http://[64:ff9b::7f00:1]/',
    'http://[2002:7f00:1::]/',
    'http://[::127.0.0.1]/',
  ],
  'another local address': ['http://[fe80::1]/', 'http://[fc00::1]/', 'http://[ff02::1]/', 'http://224.0.0.1/'],
  'a user name': ['https://ada@example.org/', 'https://ada:secret@example.org/', 'https://example.org@10.0.0.1/'],
  'a port that is not fetched': ['https://example.org:22/', 'http://example.org:8080/', 'http://example.org:0/'],
  'no valid host': [
    'http://',
    'https:///',
    'http://?x',
    'http://[::1',
    'http://1.2.3.4.5/',
    'http://a b/',
    'http://-.:x/',
  ],
  'another scheme': ['ftp://example.org/', 'file:///etc/passwd', 'javascript:alert(1)', 'data:,x', 'example.org', '/x'],
  'control characters': ['http://exa\nmple.org/', 'http://example.org/\0', 'http://example.org/\ud800'],
  'too many characters': [`https://example.org/${'a'.repeat(2_100)}`],
};

const ACCEPTED = [
  'https://example.invalid/',
  'https://example.invalid./x?y=z',
  'HTTPS://EXAMPLE.invalid:443/a b',
  'http://例え.invalid/',
  'http://example.invalid:443/',
  // The host ends at the backslash, for the check and for the request.
  'http://example.invalid\\@localhost/',
];

const FRAGMENTS = ['https://example.invalid/x#y', 'https://example.invalid/#', 'https://example.invalid/#/route?x'];

interface Way {
  /** Where the request has the URL. */
  readonly loc: readonly (string | number)[];
  set(url: string): Promise<Answer>;
}

const server = (url: string) => ({ mcp_servers: [{ name: 'orders', url }] });

/** Endpoints. */
const ENDPOINTS: Record<string, Way> = {
  'a webhook': { loc: ['body', 'url'], set: (url) => send('POST', `agents/${agent}/webhook`, { url }) },
  'a tool server of a new agent': {
    loc: ['body', 'mcp_servers', 0, 'url'],
    set: (url) => send('POST', 'agents', { name: 'Served', ...server(url) }),
  },
  'a tool server': {
    loc: ['body', 'mcp_servers', 0, 'url'],
    set: (url) => send('PATCH', `agents/${agent}`, server(url)),
  },
};

/** Pages and files. */
const CONTENTS: Record<string, Way> = {
  'a crawl': { loc: ['body', 'url'], set: (url) => send('POST', 'crawls', { url }) },
  'a media item': { loc: ['body', 'source_url'], set: (url) => send('POST', 'media', { source_url: url }) },
};

describe.each(Object.entries({ ...ENDPOINTS, ...CONTENTS }))('the URL of %s', (_name, { loc, set }) => {
  it.each(Object.entries(REFUSED))('is refused with %s', async (_what, urls) => {
    for (const url of urls) {
      const { status, json } = await set(url);
      expect({ url, status, loc: json.detail?.[0]?.loc }).toEqual({ url, status: 422, loc });
    }
  });

  it('may be any other of http or https', async () => {
    for (const url of ACCEPTED) expect({ url, status: (await set(url)).status }).toEqual({ url, status: 200 });
  });
});

it.each(Object.entries(ENDPOINTS))(
  'the URL of %s has no fragment, which is never sent',
  async (_name, { loc, set }) => {
    for (const url of FRAGMENTS) {
      const { status, json } = await set(url);
      expect({ url, status, detail: json.detail }).toMatchObject({ status: 422, detail: [{ loc, msg: /fragment/ }] });
    }
  },
);

it('a crawl starts from the page of a fragment, and a media item remembers the URL as given', async () => {
  for (const url of FRAGMENTS) {
    expect((await CONTENTS['a crawl']?.set(url))?.json.url).toBe(url.split('#')[0]);
    expect((await CONTENTS['a media item']?.set(url))?.json.source_url).toBe(url);
  }
});

/** URLs for clients, which Parley stores and never requests. */
const SHOWN: Record<string, Way> = {
  'an image of an agent': {
    loc: ['body', 'images', 'image_url'],
    set: (url) => send('PATCH', `agents/${agent}`, { images: { image_url: url } }),
  },
  'a banner of an agent': {
    loc: ['body', 'images', 'banner_url'],
    set: (url) => send('PATCH', `agents/${agent}`, { images: { banner_url: url } }),
  },
  'a website of an agent': {
    loc: ['body', 'website'],
    set: (url) => send('PATCH', `agents/${agent}`, { website: url }),
  },
  'an image of a user': {
    loc: ['body', 'image_url'],
    set: (url) => send('PATCH', `users/${user}`, { image_url: url }),
  },
};

it.each(Object.entries(SHOWN))('%s is for clients: any URL of http or https, as given', async (_name, { loc, set }) => {
  const inner = ['http://intranet:8080/a.png', 'http://10.0.0.1/a.png', 'http://localhost/a.png', ...FRAGMENTS];
  for (const url of [...ACCEPTED, ...inner]) {
    const { status, bytes } = await set(url);
    expect({ url, status, isShown: bytes.includes(JSON.stringify(url)) }).toEqual({ url, status: 200, isShown: true });
  }
  for (const url of [
    ...REFUSED['no valid host'],
    ...REFUSED['another scheme'],
    ...REFUSED['control characters'],
    ...REFUSED['too many characters'],
  ]) {
    const { status, json } = await set(url);
    expect({ url, status, loc: json.detail?.[0]?.loc }).toEqual({ url, status: 422, loc });
  }
});
