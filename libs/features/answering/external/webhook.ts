import { createHmac } from 'node:crypto';
import type { Readable } from 'node:stream';

import type { Agent } from '#libs/features/agents/index.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { retryAfterMs } from '#libs/platform/fetch/index.ts';
import { RetryLater } from '#libs/platform/reactors/index.ts';

import type { Answering } from '../context.ts';

/** Until the status: `docs/external-agents.md` names it. */
const TIMEOUT_MS = 15_000;
/** Of a response that is read to its end, so that the connection can be used again. */
const MAX_BYTES = 64 * 1024;

/** Statuses with which servers ask for a pause. */
const LATER = new Set([429, 503]);
/** Longest pause that a server gets. */
const MAX_WAIT_MS = 120_000;

interface WebhookMessage {
  /** Equal for every attempt. */
  readonly id: string;
  readonly type: string;
  readonly data: object;
  /** Of the command that removes a webhook that is gone. */
  readonly context: CommandContext;
}

/**
 * Sends a message to the webhook of an agent, if it has one, signed as Standard Webhooks says.
 *
 * @throws FetchError; the reason of `signal`; RetryLater for a server that says when to try again; Error for a status other
 * than 2xx, and for a secret that cannot be opened. A webhook that is gone (410) is removed
 */
export async function callWebhook(
  agent: Agent,
  { id, type, data, context }: WebhookMessage,
  signal: AbortSignal,
  { fetcher, agents }: Pick<Answering, 'agents' | 'fetcher'>,
): Promise<void> {
  if (agent.webhook === null) return;
  const secret = agents.tokenOf(agent, agent.webhook.sealedSecret);
  if (secret === null) throw new Error('the secret of the webhook cannot be read');
  const now = new Date();
  const seconds = String(Math.floor(now.getTime() / 1_000));
  const body = JSON.stringify({ type, timestamp: now.toISOString(), data });
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64');
  const {
    status,
    headers,
    body: rest,
  } = await fetcher.open(agent.webhook.url, {
    method: 'POST',
    body,
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': seconds,
      'webhook-signature': `v1,${signature}`,
    },
    maxRedirects: 0,
    maxBytes: Infinity,
    timeoutMs: TIMEOUT_MS,
    group: agent.id,
    signal,
  });
  // The status is the answer, whatever follows it.
  void passOver(rest);
  if (status >= 200 && status <= 299) return;
  if (status === 410) {
    await agents.disableWebhook(context, agent.id, agent.webhook.sealedSecret);
    return;
  }
  const message = `the webhook answered with the status ${status}`;
  const afterMs = LATER.has(status) ? retryAfterMs(headers) : null;
  throw afterMs === null ? new Error(message) : new RetryLater(message, Math.min(afterMs, MAX_WAIT_MS));
}

/** Never rejects. The deadline of the request ends it. */
async function passOver(body: Readable): Promise<void> {
  let bytes = 0;
  try {
    for await (const chunk of body) {
      bytes += (chunk as Buffer).length;
      if (bytes > MAX_BYTES) break;
    }
  } catch {
    // Nothing of it is needed.
  }
}
