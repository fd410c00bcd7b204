import type { FastifyReply, FastifyRequest } from 'fastify';

import { unreachable } from '#libs/kernel/decider.ts';
import { conflict, etagOf, forbidden, notFound, sendJson, setPosition } from '#libs/platform/http/index.ts';
import { streamName } from '#libs/platform/readmodel/index.ts';

import type { KeyRejection } from './key.decider.ts';
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
 * Answers with a new key and its secret. The reply that is stored under an `Idempotency-Key` lacks the secret: a
 * repeated request gets the same key (id, scopes, …) with `"key": null`, and creates no second one.
 */
export function sendNewKey(request: FastifyRequest, reply: FastifyReply, result: NewKeyResult): FastifyReply {
  if (!result.ok) throw errorOf(result.rejection);
  setHeaders(request, reply, result);
  void reply.header('cache-control', 'no-store');
  const resource = keyResource(result.key);
  if (request.idempotentRun !== null) request.idempotentRun.storedBody = JSON.stringify({ ...resource, key: null });
  return sendJson(reply, JSON.stringify({ ...resource, key: result.secret }));
}

function setHeaders(request: FastifyRequest, reply: FastifyReply, { key, revision }: KeyResult & { ok: true }): void {
  // A position opens only for its own organization; whoever acts on another one reads what it wrote anyhow.
  if (key.organizationId === request.principal.organizationId) {
    setPosition(request, reply, { stream: streamName(KEY, key.id), revision });
  }
  void reply.header('etag', etagOf(key.changedRevision));
}

function errorOf(rejection: KeyRejection): Error {
  switch (rejection.reason) {
    case 'not_found':
      return notFound();
    case 'scope_not_held':
      return forbidden(
        `The API key lacks the scope ${rejection.scope}, so it cannot create, rotate or revoke a key that has it`,
        'missing_scope',
      );
    case 'outlives_caller':
      return forbidden(
        `The calling API key ends at ${rejection.latest}: no key that it creates ends later`,
        'outlives_caller',
      );
    case 'user_not_active':
      return conflict('The user that the key belongs to was deactivated', 'user_not_active');
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
