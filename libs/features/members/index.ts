/**
 * Members: users who authenticate by tokens that parties of their organization sign. One stream, `token_issuer-<id>`, for
 * each party.
 */
import type { Module } from '#libs/platform/runtime/index.ts';

import { tokenIssuerEntity } from './token-issuer.read.ts';

export { CallerAuthenticator } from './caller-authenticator.ts';
export { KeySets } from './key-sets.ts';
export { TokenAuthenticator } from './token-authenticator.ts';
export { tokenIssuerRoutes } from './token-issuer.http.ts';
export { TokenIssuers } from './token-issuer.read.ts';

export const membersModule = { name: 'members', projections: [tokenIssuerEntity.projection] } satisfies Module;
