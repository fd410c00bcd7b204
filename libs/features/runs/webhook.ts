import { createHmac } from 'node:crypto';

import { invocationFor } from '#libs/features/agents/index.ts';
import type { DeliveredInvocation } from '#libs/features/agents/index.ts';
import type { Fetcher } from '#libs/platform/fetch/index.ts';

import type { RunAgent, RunAgents } from './run.agent.ts';

const TIMEOUT_MS = 15_000;
/** Of the response, which is not read. */
const MAX_BYTES = 64 * 1024;

export interface WebhookParts {
  readonly fetcher: Pick<Fetcher, 'fetch'>;
  readonly agents: Pick<RunAgents, 'tokenOf'>;
}

/**
 * Sends an invocation to the webhook of an agent, if it has one: signed as Standard Webhooks says, with the same id for every attempt.
 *
 * @throws FetchError; the reason of `signal`; Error for a status other than 2xx, and for a secret that cannot be opened
 */
export async function callWebhook(
  agent: RunAgent,
  invocation: DeliveredInvocation,
  signal: AbortSignal,
  { fetcher, agents }: WebhookParts,
): Promise<void> {
  if (agent.webhook === null) return;
  const secret = agents.tokenOf(agent, agent.webhook.sealedSecret);
  if (secret === null) throw new Error('the secret of the webhook cannot be read');
  const now = new Date();
  const seconds = String(Math.floor(now.getTime() / 1_000));
  const data = invocationFor(agent.id, invocation);
  const body = JSON.stringify({ type: 'invocation.requested', timestamp: now.toISOString(), data });
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const signature = createHmac('sha256', key).update(`${invocation.runId}.${seconds}.${body}`).digest('base64');
  const { status } = await fetcher.fetch(agent.webhook.url, {
    method: 'POST',
    body,
    headers: {
      'content-type': 'application/json',
      'webhook-id': invocation.runId,
      'webhook-timestamp': seconds,
      'webhook-signature': `v1,${signature}`,
    },
    maxRedirects: 0,
    maxBytes: MAX_BYTES,
    timeoutMs: TIMEOUT_MS,
    signal,
  });
  if (status < 200 || status > 299) throw new Error(`the webhook answered with the status ${status}`);
}
