/** docs/your-users.md: its commands, its backend and its page, in a real browser. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { type ChatPage, startChatPage } from '#test/support/chat-page.ts';
import { startChromium } from '#test/support/chromium.ts';

let chat: ChatPage;
let browser: Browser;
beforeAll(async () => {
  [chat, browser] = await Promise.all([startChatPage(), startChromium()]);
}, 600_000);
afterAll(async () => {
  await browser?.close();
  await chat?.stop();
});

it('shows a user of the backend a message at once, and the answer of the agent', { timeout: 60_000 }, async () => {
  const page = await browser.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.goto(chat.urlFor('42'));
  await page.getByRole('heading', { name: 'Order 4711' }).waitFor();
  await page.getByPlaceholder('Message').fill('Where is my order?');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.locator('article.own:not(.pending)', { hasText: 'Ada Where is my order?' }).waitFor();
  await page
    .locator('article', { hasText: /^Helper ./ })
    .first()
    .waitFor();
  expect(await page.locator('article.own').count()).toBe(1);
  expect(complaints).toEqual([]);
});

it('shows nothing to a user of the backend that takes no part, and no token to anyone else', async () => {
  const page = await browser.newPage();
  await page.goto(chat.urlFor('43'));
  await page.getByRole('alert').waitFor();
  expect(await page.locator('article').count()).toBe(0);
  expect((await chat.token('44')).status).toBe(401);
});
