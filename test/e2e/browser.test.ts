/** The packed client in a page of a real browser, while connections are cut and Parley is killed. */
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type PageServer, startChromium, startPageServer } from '#test/support/chromium.ts';
import { installClient, type InstalledClient } from '#test/support/client-package.ts';
import { type CutProxy, startCutProxy } from '#test/support/cut-proxy.ts';
import { eventually } from '#test/support/eventually.ts';
import { type ParleyHere, startParleyHere } from '#test/support/parley-here.ts';
import { type ParleyProcess, startParleyProcess } from '#test/support/parley-process.ts';

/** Follows a channel on request and records what it received in `window.seen`. */
const PAGE = `<!doctype html>
<title>A page that follows a channel</title>
<script type="importmap">
  { "imports": { "@parley/client": "/client/index.js", "openapi-fetch": "/openapi-fetch/index.mjs" } }
</script>
<script type="module">
  import { ParleyClient } from '@parley/client';
  window.seen = [];
  window.states = [];
  window.drafts = [];
  window.follow = (url, channel, { apiKey, after, backend }) => {
    const tickets = backend ? async (id) => (await fetch('/tickets/' + id)).json() : undefined;
    window.client = new ParleyClient({ url, apiKey, tickets });
    const options = { after, backoff: { maxMs: 500 } };
    window.subscription = window.client.channel(channel).subscribe(options);
    window.subscription.on('event', ({ seq }) => window.seen.push(seq));
    window.subscription.on('draft', ({ text }) => window.drafts.push(text));
    window.subscription.on('state', ({ state, error }) => window.states.push(error?.code ?? state));
  };
  window.ready = true;
</script>
`;

interface Followed {
  readonly seen: readonly number[];
  readonly states: readonly string[];
  readonly drafts: readonly string[];
}

describe('the client in a browser', { timeout: 120_000 }, () => {
  let browser: Browser;
  let client: InstalledClient;
  let pages: PageServer;
  /** Is killed by the first test. */
  let killed: ParleyProcess;
  let parley: Pick<ParleyProcess, 'api' | 'apiKey'>;
  let restarted: ParleyHere | undefined;
  let proxy: CutProxy;

  beforeAll(async () => {
    client = await installClient();
    const modules = join(client.folder, 'node_modules');
    pages = await startPageServer({
      page: PAGE,
      folders: {
        client: join(modules, '@parley/client/dist'),
        'openapi-fetch': join(modules, 'openapi-fetch/dist'),
      },
      backend: { tickets: async (id) => (await parley.api.post(`/api/v1/channels/${id}/websocket_ticket`)).json() },
    });
    parley = killed = await startParleyProcess({ env: { CORS_ORIGINS: pages.origins[0] } });
    proxy = await startCutProxy(killed.baseUrl);
    browser = await startChromium();
  }, 600_000);
  afterAll(async () => {
    await browser?.close();
    await proxy?.stop();
    await restarted?.stop();
    await killed?.stop();
    await pages?.stop();
    await client?.remove();
  });

  async function open(origin: string): Promise<Page> {
    const page = await browser.newPage();
    await page.goto(origin);
    await page.waitForFunction('window.ready');
    return page;
  }
  async function createChannel(): Promise<string> {
    const { id } = (await parley.api.post('/api/v1/channels', { name: 'Browsed' })).json() as { id: string };
    return id;
  }
  async function post(channel: string, times: number): Promise<void> {
    for (let time = 0; time < times; time++) {
      const body = { content: [{ type: 'text', text: `${time}` }] };
      expect((await parley.api.post(`/api/v1/channels/${channel}/interactions`, body)).status).toBe(200);
    }
  }
  const follow = (page: Page, channel: string, options: object): Promise<void> =>
    page.evaluate(`follow(${[proxy.baseUrl, channel, options].map((one) => JSON.stringify(one)).join()})`);
  const state = (page: Page): Promise<Followed> => page.evaluate('({ seen, states, drafts })');
  const oneTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1);

  it('receives each event once, in order, after cut connections and a killed Parley', async () => {
    const channel = await createChannel();
    const page = await open(pages.origins[0]);
    await follow(page, channel, { apiKey: parley.apiKey, after: 0 });
    await post(channel, 5);
    await eventually(async () => expect((await state(page)).seen).toEqual(oneTo(6)));

    expect(proxy.cut()).toBeGreaterThan(0);
    await post(channel, 5);
    await eventually(async () => expect((await state(page)).seen).toEqual(oneTo(11)));

    await killed.kill9();
    parley = restarted = await startParleyHere({
      PORT: String(killed.port),
      DATA_DIR: killed.dataDir,
      PARLEY_BOOTSTRAP_KEY: killed.apiKey,
      CORS_ORIGINS: pages.origins[0],
    });
    await post(channel, 5);
    await eventually(async () => expect((await state(page)).seen).toEqual(oneTo(16)));
    expect((await state(page)).states).toContain('waiting');
    await page.close();
  });

  it('sends commands, and receives drafts as they grow', async () => {
    const channel = await createChannel();
    const page = await open(pages.origins[0]);
    await follow(page, channel, { apiKey: parley.apiKey, after: 0 });
    const posted = await page.evaluate(
      `subscription.send('interaction.post', { content: [], content_role: 'agent_response', complete: false,
        participant: { type: 'external_agent' } })`,
    );
    expect(posted).toMatchObject({ seq: 2 });
    const { items } = (
      await parley.api.get(`/api/v1/channels/${channel}/interactions?include_incomplete=true`)
    ).json() as {
      items: { id: string }[];
    };
    const deltas = `/api/v1/interactions/${items[0]?.id}/deltas`;
    await eventually(async () => expect((await state(page)).seen).toEqual([1, 2]));
    for (const [offset, text] of [
      [0, 'Once '],
      [5, 'upon '],
      [10, 'a time'],
    ] as const) {
      expect((await parley.api.post(deltas, { offset, text })).status).toBe(200);
    }
    await eventually(async () => expect((await state(page)).drafts.at(-1)).toBe('Once upon a time'));
    await page.close();
  });

  it('needs no API key in the page: its backend fetches the tickets', async () => {
    const channel = await createChannel();
    const page = await open(pages.origins[0]);
    await follow(page, channel, { backend: true, after: 0 });
    await post(channel, 3);
    await eventually(async () => expect((await state(page)).seen).toEqual(oneTo(4)));
    expect(proxy.cut()).toBeGreaterThan(0);
    await post(channel, 1);
    await eventually(async () => expect((await state(page)).seen).toEqual(oneTo(5)));
    await page.close();
  });

  it('is refused from an origin that Parley does not know, and reports that instead of retrying', async () => {
    const channel = await createChannel();
    const page = await open(pages.origins[1]);
    await follow(page, channel, { backend: true, after: 0 });
    await eventually(async () => expect((await state(page)).states.at(-1)).toBe('ticket_refused'));
    expect((await state(page)).seen).toEqual([]);
    await page.close();
  });
});
