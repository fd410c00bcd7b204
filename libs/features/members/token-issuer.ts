/*
 * WARNING: event names and shapes are the storage format: written events stay in the log forever. Never change a type in
 * place: a new version is a new type, and the old one gets an upcaster.
 */
import { isDeepStrictEqual } from 'node:util';

import { z } from 'zod';

import type { Timestamp } from '#libs/kernel/clock.ts';
import { accept, type Decision, type Fold } from '#libs/kernel/decider.ts';
import { changedBy, createdBy, type EntityState } from '#libs/kernel/entity.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';

/** Category of the streams, `token_issuer-<id>`. */
export const TOKEN_ISSUER = 'token_issuer';

/** A public key as a JWK, with nothing but the members that verification needs. */
const publicKey = z.object({
  /** The only algorithm that the key verifies. */
  alg: z.enum(['EdDSA', 'ES256', 'RS256']),
  kty: z.string(),
  kid: z.string().optional(),
  crv: z.string().optional(),
  x: z.string().optional(),
  y: z.string().optional(),
  n: z.string().optional(),
  e: z.string().optional(),
});
export type PublicKey = z.infer<typeof publicKey>;

const settings = {
  name: z.string(),
  /** Registered keys; empty if there is a `jwksUrl`. */
  keys: z.array(publicKey),
  /** Where the keys are published. */
  jwksUrl: z.string().nullable(),
  /** Whether a subject that is seen for the first time becomes a user. */
  createsUsers: z.boolean(),
};

export const tokenIssuerCodec = defineEvents({
  'TokenIssuerCreated.v1': z.object({
    id: z.string(),
    /** `iss` and `aud` of its tokens. Both are fixed: the ids of its users follow from `issuer`. */
    issuer: z.string(),
    audience: z.string(),
    ...settings,
  }),
  /** Members that did not change are absent. */
  'TokenIssuerUpdated.v1': z.object(settings).partial(),
  /** For good: its tokens and those who hold them are refused. */
  'TokenIssuerDeleted.v1': z.object({}),
});

export type TokenIssuerEvent = EventOf<typeof tokenIssuerCodec>;
export type TokenIssuerCreated = Extract<TokenIssuerEvent, { type: 'TokenIssuerCreated.v1' }>['data'];
type TokenIssuerSettings = Pick<TokenIssuerCreated, keyof typeof settings>;

/** A party that signs tokens for users of an organization. */
export type TokenIssuer = TokenIssuerCreated & EntityState & { readonly deletedAt: Timestamp | null };

/** `null` until the issuer is created. */
export type TokenIssuerState = TokenIssuer | null;

export const tokenIssuerFold: Fold<TokenIssuerState, TokenIssuerEvent> = {
  initialState: null,
  evolve(state, event) {
    if (event.type === 'TokenIssuerCreated.v1') return { ...event.data, ...createdBy(event), deletedAt: null };
    if (state === null) return state;
    const changed = { ...state, ...changedBy(event) };
    if (event.type === 'TokenIssuerDeleted.v1') return { ...changed, deletedAt: changed.modified };
    const { name = state.name, keys = state.keys } = event.data;
    const { jwksUrl = state.jwksUrl, createsUsers = state.createsUsers } = event.data;
    return { ...changed, name, keys, jwksUrl, createsUsers };
  },
};

/** Fields to change; absent ones stay as they are. */
export type TokenIssuerChanges = {
  readonly [Name in keyof TokenIssuerSettings]?: TokenIssuerSettings[Name] | undefined;
};

export function decideUpdate(issuer: TokenIssuer, changes: TokenIssuerChanges): Decision<TokenIssuerEvent, never> {
  const changed = Object.entries(changes).filter(
    ([name, value]) => value !== undefined && !isDeepStrictEqual(value, issuer[name as keyof TokenIssuerSettings]),
  );
  if (changed.length === 0) return accept();
  return accept({ type: 'TokenIssuerUpdated.v1', data: Object.fromEntries(changed) });
}

export function decideDelete(): Decision<TokenIssuerEvent, never> {
  return accept({ type: 'TokenIssuerDeleted.v1', data: {} });
}
