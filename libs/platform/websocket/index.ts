/** Websockets: upgrades of HTTP requests, the handshake, and connections that encoded frames are written to. */
export { Connection } from './connection.ts';
export type { ConnectionOwner } from './connection.ts';
export { Handshakes, offeredProtocols } from './handshake.ts';
export { drained, StalledWrites } from './socket-writes.ts';
export { payloadOf, textFrame } from './text-frame.ts';
export { pathOf, queryOf, refuseUpgrade, Upgrades } from './upgrades.ts';
export type { UpgradeHandler } from './upgrades.ts';
