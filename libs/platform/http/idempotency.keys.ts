import { hash } from 'node:crypto';

/** The answer to an idempotency key. Not a read model: it expires and cannot be rebuilt. */
export function idempotencyKey(scope: {
  readonly organizationId: string;
  readonly principalId: string;
  readonly key: string;
}): string {
  // Hashed, because callers choose the key.
  const digest = hash('sha256', JSON.stringify([scope.principalId, scope.key]), 'base64url');
  return `parley:idempotency:{${scope.organizationId}:${digest}}`;
}
