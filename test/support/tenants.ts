/** Organizations and keys for black-box tests, made with the key of the first organization. */
import type { ApiClient } from './api-client.ts';
import { asRecord } from './log-reader.ts';

export interface Tenant {
  readonly organizationId: string;
  readonly userId: string;
  /** Acts as that user, with the scopes `read`, `write`, `impersonate` and `admin`. */
  readonly api: ApiClient;
  /** The key that `api` uses. */
  readonly key: string;
}

let count = 0;

/** A new organization with one user, whose lists hold only what the test has made. */
export async function newTenant(root: ApiClient): Promise<Tenant> {
  const name = `Organization ${++count}`;
  const organizationId = await created(root, '/api/v1/organizations', { name });
  const user = { display_name: `User of ${name}`, organization_id: organizationId };
  const userId = await created(root, '/api/v1/users', user);
  const key = await newKey(root, ['read', 'write', 'impersonate', 'admin'], {
    principal: { type: 'user', id: userId },
    access: 'organization',
    organization_id: organizationId,
  });
  return { organizationId, userId, api: root.withKey(key), key };
}

/** The secret of a new key. */
export async function newKey(root: ApiClient, scopes: readonly string[], rest: object = {}): Promise<string> {
  const reply = await root.post('/api/v1/keys', { name: 'a key of a test', scopes, ...rest });
  return String(asRecord(reply.json())['key']);
}

async function created(root: ApiClient, path: string, body: object): Promise<string> {
  const reply = await root.post(path, body);
  if (reply.status !== 200) throw new Error(`${path} answered ${reply.status} ${reply.text}`);
  return String(asRecord(reply.json())['id']);
}
