import { z } from 'zod';

import { shownFields } from '#libs/kernel/fields.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { digestFacet, Entities, entity, type EntityResult, type NotFound } from '#libs/platform/entity/index.ts';
import { shownTime } from '#libs/platform/http/index.ts';
import type { Announcements } from '#libs/platform/announcements/index.ts';
import type { Core } from '#libs/platform/runtime/index.ts';

import {
  decideDelete,
  decideUpdate,
  TOKEN_ISSUER,
  type TokenIssuer,
  type TokenIssuerChanges,
  tokenIssuerCodec,
  type TokenIssuerEvent,
  tokenIssuerFold,
  type TokenIssuerState,
} from './token-issuer.ts';

const lookUp = (issuer: string) => ({ issuer: digestFacet(issuer) });

const issuerFields = shownFields<TokenIssuer>()({
  id: z.string(),
  name: z.string(),
  issuer: z.string(),
  audience: z.string(),
  keys: [
    z.array(z.record(z.string(), z.string())).describe('The registered public keys, as JWKs'),
    ({ keys }) => keys as readonly Record<string, string>[],
  ],
  jwks_url: z.string().nullable(),
  creates_users: z.boolean(),
  created_at: shownTime(),
  modified: shownTime(),
});
export const issuerSchema = z.object(issuerFields.shape).meta({ id: 'TokenIssuer' });

export const tokenIssuerEntity = entity<TokenIssuerState, TokenIssuerEvent, {}>({
  category: TOKEN_ISSUER,
  version: 1,
  codec: tokenIssuerCodec,
  fold: tokenIssuerFold,
  resource: issuerFields.resource,
  facets: () => ({}),
  /** A token names its issuer, and no organization. */
  lookUps: ({ issuer }) => lookUp(issuer),
});

export class TokenIssuers extends Entities<TokenIssuerState, TokenIssuerEvent, {}> {
  readonly #announcements: Announcements;

  constructor(core: Core) {
    super(tokenIssuerEntity, core);
    this.#announcements = core.announcements;
  }

  async change(
    context: CommandContext,
    id: EntityId,
    changes: TokenIssuerChanges | 'delete',
  ): Promise<EntityResult<TokenIssuer, NotFound>> {
    const result = await this.update(context, id, (issuer) =>
      changes === 'delete' ? decideDelete() : decideUpdate(issuer, changes),
    );
    if (result.ok) await this.#announcements.announce({ kind: 'issuer-changed', issuerId: id });
    return result;
  }

  /**
   * Ids of the issuers of all organizations that have a name, by the read model. It may lack one and may hold one that is
   * deleted: what each issuer is now is decided on the log.
   */
  named(issuer: string): Promise<readonly EntityId[]> {
    return this.lookedUp(lookUp(issuer));
  }
}
