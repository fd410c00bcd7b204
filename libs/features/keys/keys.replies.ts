import type { FastifyReply, FastifyRequest } from 'fastify';

import { unreachable } from '#libs/kernel/decider.ts';
import {
  conflict,
  etagOf,
  forbidden,
  notFound,
  preconditionFailed,
  sendJson,
  setPosition,
} from '#libs/platform/http/index.ts';
import type { IdempotencyStore } from '#libs/platform/http/index.ts';
import { streamName } from '#libs/platform/readmodel/index.ts';

import type { Key, KeyRejection } from './key.decider.ts';
import { KEY } from './key.events.ts';
import type { KeyResult, NewKeyResult } from './keys.commands.ts';
import { keyResource } from './keys.projection.ts';

/** Answers a command with the key as it left it. */
export function sendKey(request: FastifyRequest, reply: FastifyReply, result: KeyResult): FastifyReply {
  if (!result.ok) throw errorOf(result.rejection);
  setHeaders(request, reply, result);
  return sendJson(reply, JSON.stringify(keyResource(result.key)));
}

/**
 * Answers with a new key and its secret. Answers to idempotency keys are stored as they went out, for 24
 * hours: this one is stored here instead, without the secret. Whoever repeats the request gets the same key
 * (id, scopes, …) with `"key": null`, makes no second one, and can rotate or revoke it.
 */
export async function sendNewKey(
  request: FastifyRequest,
  reply: FastifyReply,
  result: NewKeyResult,
  idempotency: IdempotencyStore | undefined,
): Promise<FastifyReply> {
  if (!result.ok) throw errorOf(result.rejection);
  setHeaders(request, reply, result);
  void reply.header('cache-control', 'no-store');
  await storeWithoutSecret(request, reply, result.key, idempotency);
  return sendJson(reply, JSON.stringify({ ...keyResource(result.key), key: result.secret }));
}

const KEEP_MS = 24 * 60 * 60 * 1000;

async function storeWithoutSecret(
  request: FastifyRequest,
  reply: FastifyReply,
  key: Key,
  idempotency: IdempotencyStore | undefined,
): Promise<void> {
  const run = request.idempotentRun;
  const lease = run?.lease;
  if (run === null || lease === undefined) return;
  // Without a lease, nobody behind us stores the answer; whatever happens here, the secret must not be.
  run.lease = undefined;
  const headers: Record<string, string> = { 'content-type': 'application/json; charset=utf-8' };
  for (const name of ['etag', 'parley-position']) {
    const value = reply.getHeader(name);
    if (value !== undefined) headers[name] = String(value);
  }
  const body = JSON.stringify({ ...keyResource(key), key: null });
  try {
    await idempotency?.complete(run.scope, lease, { status: 200, headers, body }, KEEP_MS);
  } catch (error) {
    request.log.warn({ err: error, request_id: request.id }, 'the answer to an idempotency key was not stored');
  }
}

function setHeaders(request: FastifyRequest, reply: FastifyReply, { key, revision }: KeyResult & { ok: true }): void {
  // A position opens only for its own organization; whoever acts on another one reads what it wrote anyhow.
  if (key.organizationId === request.principal.organizationId) {
    setPosition(request, reply, { stream: streamName(KEY, key.id), revision });
  }
  void reply.header('etag', etagOf(key.changedAt));
}

function errorOf(rejection: KeyRejection): Error {
  switch (rejection.reason) {
    case 'not_found':
      return notFound();
    case 'changed_since':
      return preconditionFailed();
    case 'scope_not_held':
      return forbidden(`The API key lacks the scope ${rejection.scope}, so it cannot grant it`, 'missing_scope');
    case 'not_active':
      return conflict('The key has expired or was revoked', 'key_not_active');
    case 'rotated_already':
      return conflict('The key has a successor that works: rotate that one, or revoke it first', 'key_rotated');
    case 'two_active':
      return conflict('The key and the one before it both work: revoke the older one first', 'two_keys_active');
    case 'withdrawn':
      return conflict('Another rotation of the same key came first', 'conflict');
    default:
      return unreachable(rejection);
  }
}
