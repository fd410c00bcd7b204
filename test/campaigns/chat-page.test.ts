/**
 * The chat page of docs/your-users.md in real Chromium, while what happens to pages happens: reloads and second tabs in the
 * middle of an answer, a killed server, a cancelled answer, an expired token, a removed user. `CHAT_PAGE_SCREENSHOTS` names a
 * folder for pictures of it.
 */
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { type ChatPage, startChatPage } from '#test/support/chat-page.ts';
import { startChromium } from '#test/support/chromium.ts';
import { type CutProxy, startCutProxy } from '#test/support/cut-proxy.ts';
import { eventually } from '#test/support/eventually.ts';
import { type ModelServer, startModelServer } from '#test/support/model-server.ts';

const WORDS = ['It ', 'left ', 'the ', 'warehouse ', 'this ', 'morning.'];

describe('the chat page', { timeout: 180_000 }, () => {
  let model: ModelServer;
  let chat: ChatPage;
  let browser: Browser;
  let proxy: CutProxy;
  let context: BrowserContext;
  /** Lets the model write one more word. */
  let write: () => Promise<void>;
  let isHungUp: boolean;

  beforeAll(async () => {
    model = await startModelServer();
    const env = { MODEL_BASE_URL: model.baseUrl, MODEL_NAME: 'slow', MODEL_API_KEY: 'none' };
    [chat, browser] = await Promise.all([startChatPage(env), startChromium()]);
    proxy = await startCutProxy(chat.parley.baseUrl);
  }, 600_000);
  afterAll(async () => {
    await browser?.close();
    await proxy?.stop();
    await chat?.stop();
    await model?.stop();
  });
  beforeEach(async () => {
    context = await browser.newContext({ viewport: { width: 720, height: 560 } });
    const steps: (() => void)[] = [];
    isHungUp = false;
    model.script(async (response) => {
      response.on('close', () => (isHungUp = true));
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const send = (delta: object, finish: string | null = null): boolean =>
        response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`);
      send({ role: 'assistant', content: '' });
      for (const content of WORDS) {
        await new Promise<void>((resolve) => steps.push(resolve));
        send({ content });
      }
      send({}, 'stop');
      response.end('data: [DONE]\n\n');
    });
    write = async () => {
      await eventually(() => {
        const next = steps.shift();
        next?.();
        return next !== undefined;
      });
    };
  });
  afterEach(() => context.close());

  async function open(user = '42', url?: string): Promise<Page> {
    const page = await context.newPage();
    await page.goto(chat.urlFor(user, url));
    return page;
  }
  async function ask(page: Page, text: string): Promise<void> {
    await page.getByPlaceholder('Message').fill(text);
    await page.getByRole('button', { name: 'Send' }).click();
  }
  const answers = (page: Page) => page.locator('article', { hasText: /^Helper/ });
  const shows = (page: Page, text: string) =>
    eventually(async () => expect(await answers(page).last().innerText()).toContain(text), { timeoutMs: 30_000 });
  const picture = async (page: Page, name: string): Promise<void> => {
    const folder = process.env['CHAT_PAGE_SCREENSHOTS'];
    if (folder !== undefined) await page.screenshot({ path: join(folder, `${name}.png`) });
  };

  it('continues an answer that is being written after a reload, and in a second tab', async () => {
    const page = await open();
    await ask(page, 'Where is it?');
    for (let count = 0; count < 3; count += 1) await write();
    await shows(page, 'It left the');
    await picture(page, 'writing');
    const tab = await open();
    await page.reload();
    for (const one of [page, tab]) await shows(one, 'It left the');
    for (let count = 0; count < 3; count += 1) await write();
    for (const one of [page, tab]) {
      await shows(one, WORDS.join(''));
      await one.getByRole('button', { name: 'Stop' }).waitFor({ state: 'detached' });
      expect(await one.locator('article').allInnerTexts()).toEqual(['Ada Where is it?', `Helper ${WORDS.join('')}`]);
    }
    await picture(tab, 'answered');
  });

  it('stops an answer, in all tabs and down to the model', async () => {
    const [page, tab] = [await open(), await open()];
    await ask(page, 'And the invoice?');
    await write();
    await write();
    await shows(tab, 'It left');
    await tab.getByRole('button', { name: 'Stop' }).click();
    for (const one of [page, tab]) await shows(one, '(stopped)');
    await eventually(() => expect(isHungUp).toBe(true));
    expect(await answers(page).last().innerText()).toMatch(/^Helper It left\s+\(stopped\)$/);
    await picture(page, 'stopped');
  });

  it('shows each message once after its connections are cut, with a pale one in between', async () => {
    const page = await open('42', proxy.baseUrl);
    await page.getByRole('heading', { name: 'Order 4711' }).waitFor();
    proxy.silence();
    await ask(page, 'Sent without a network');
    await page.locator('article.pending').waitFor();
    await picture(page, 'pending');
    proxy.cut();
    proxy.speak();
    await page.locator('article.own:not(.pending)', { hasText: 'Sent without a network' }).waitFor();
    expect(await page.locator('article', { hasText: 'Sent without a network' }).count()).toBe(1);
    for (const _word of WORDS) await write();
    await shows(page, WORDS.join(''));
  });

  it('survives kill -9 of the server in the middle of an answer, and its restart', async () => {
    const page = await open();
    await ask(page, 'Will it survive?');
    await write();
    await eventually(async () => expect(await answers(page).last().innerText()).toMatch(/^Helper It\s+Stop$/));
    const before = await page.locator('article').count();
    await chat.parley.kill9();
    await page.getByRole('status').waitFor();
    expect(await page.locator('article').count()).toBe(before);
    await picture(page, 'killed');
    await ask(page, 'Sent while it is down');
    await page.locator('article.pending').waitFor();
    await chat.parley.start();
    await chat.parley.ready();
    await page.getByRole('status').waitFor({ state: 'detached', timeout: 60_000 });
    await page.locator('article.own:not(.pending)', { hasText: 'Sent while it is down' }).waitFor({ timeout: 60_000 });
    // The run begins anew, and the message that was sent meanwhile is answered after it.
    const writing = new AbortController();
    const pen = (async () => {
      while (!writing.signal.aborted) await write().catch(() => undefined);
    })();
    const texts = await eventually(
      async () => {
        const all = await page.locator('article').allInnerTexts();
        // Of this test the last two, and those of the tests before.
        expect(all.filter((text) => text === `Helper ${WORDS.join('')}`).length).toBe(4);
        return all;
      },
      { timeoutMs: 90_000 },
    );
    writing.abort();
    void pen;
    for (const text of ['Ada Will it survive?', 'Ada Sent while it is down']) {
      expect(texts.filter((one) => one === text)).toHaveLength(1);
    }
    await picture(page, 'restarted');
  });

  it('says that its user was removed, shows nothing that comes later, and neither does a reload', async () => {
    const page = await open();
    const frames: string[] = [];
    page.on('websocket', (socket) => socket.on('framereceived', ({ payload }) => frames.push(String(payload))));
    await page.reload();
    await page.locator('article').first().waitFor();
    await eventually(() => expect(frames.some((one) => one.includes('caught_up'))).toBe(true));
    const path = `/api/v1/channels/${chat.ids.CHANNEL}`;
    const { items } = (await chat.parley.api.get(`${path}/participants`)).json() as {
      items: { participant_id: string; participant: { user_id?: string } }[];
    };
    const ada = items.find(({ participant }) => participant.user_id === chat.ids.ADA);
    expect((await chat.parley.api.delete(`${path}/participants/${ada?.participant_id}`)).status).toBeLessThan(300);
    await page.getByRole('alert').waitFor();
    await picture(page, 'removed');
    const content = [{ type: 'text', text: 'Not for Ada' }];
    expect((await chat.parley.api.post(`${path}/interactions`, { content })).status).toBe(200);
    expect(frames.join('')).not.toContain('Not for Ada');
    await page.reload();
    await page.getByRole('alert').waitFor();
    expect(await page.locator('article').count()).toBe(0);
    expect(frames.join('')).not.toContain('Not for Ada');
  });
});
