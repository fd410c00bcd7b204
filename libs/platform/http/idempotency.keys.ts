import { createHash } from 'node:crypto';

/** What a caller's idempotency key was answered with. Not a read model: it cannot be rebuilt, and expires. */
export function idempotencyKey(scope: {
  readonly organizationId: string;
  readonly principalId: string;
  readonly key: string;
}): string {
  // Hashed, because callers choose the key: any length, any characters.
  const digest = createHash('sha256')
    .update(JSON.stringify([scope.principalId, scope.key]))
    .digest('base64url');
  return `parley:idempotency:{${scope.organizationId}:${digest}}`;
}
