/** What versions after the first data folders have: filled where the version's OpenAPI document has the route. */
import { asRecord } from '#test/support/log-reader.ts';
import { Signer } from '#test/support/member-tokens.ts';
import type { Caller } from './caller.ts';

export interface LaterEntities {
  /** A user with a token, if the version knows tokens. */
  readonly member: Caller | null;
}

/** @param channel one in which `user` takes part */
export async function fillLater(api: Caller, user: Caller, channel: string, round: string): Promise<LaterEntities> {
  const paths = asRecord((await api.get('/openapi.json'))['paths']);
  const knows = (method: string, path: string): boolean => method in asRecord(paths[path] ?? {});
  if (knows('patch', '/api/v1/interactions/{interaction_id}')) await editAndDelete(user, channel);
  if (knows('put', '/api/v1/interactions/{interaction_id}/pin')) await pin(api, channel);
  if (knows('put', '/api/v1/channels/{id}/read_marker')) {
    await user.put(`/api/v1/channels/${channel}/read_marker`, { sequence: 5 });
    await user.put(`/api/v1/channels/${channel}/read_marker`, { sequence: 7 });
  }
  const member = knows('post', '/api/v1/token-issuers') ? await fillMembers(api, channel, round) : null;
  return { member };
}

const post = (api: Caller, channel: string, text: string): Promise<string> =>
  api.create(`/api/v1/channels/${channel}/interactions`, { content: [{ type: 'text', text }] });

async function editAndDelete(user: Caller, channel: string): Promise<void> {
  const [edited, deleted] = [await post(user, channel, 'Not yet right'), await post(user, channel, 'Wrong')];
  await user.patch(`/api/v1/interactions/${edited}`, { content: [{ type: 'text', text: 'Right' }] });
  await user.delete(`/api/v1/interactions/${deleted}`);
}

async function pin(api: Caller, channel: string): Promise<void> {
  const [pinned, unpinned] = [await post(api, channel, 'Pinned'), await post(api, channel, 'Pinned no longer')];
  for (const id of [pinned, unpinned]) await api.put(`/api/v1/interactions/${id}/pin`);
  await api.delete(`/api/v1/interactions/${unpinned}/pin`);
}

async function fillMembers(api: Caller, channel: string, round: string): Promise<Caller> {
  const issuers = '/api/v1/token-issuers';
  const signer = await Signer.create('EdDSA', `https://${round}.example.org`);
  const issuer = await api.create(issuers, signer.registration);
  await api.patch(`${issuers}/${issuer}`, { audience: signer.audience, keys: [signer.jwk] });
  const deleted = await Signer.create('EdDSA', `https://deleted-${round}.example.org`);
  await api.delete(`${issuers}/${await api.create(issuers, deleted.registration)}`);
  const linus = await api.create('/api/v1/users', {
    external_id: 'linus',
    issuer: signer.issuer,
    display_name: 'Linus',
  });
  await api.post(`/api/v1/channels/${channel}/participants`, { type: 'authenticated_user', user_id: linus });
  const now = Math.floor(Date.now() / 1_000);
  const member = api.withKey(await signer.token('linus', { iat: now, exp: now + 6 * 60 * 60 }));
  await post(member, channel, 'As a member');
  await member.create('/api/v1/channels', { name: `Of a member ${round}` });
  return member;
}
