/** Websockets: the handshake, connections that frames are written to, and the way there from an HTTP server. */
export { Connection } from './connection.ts';
export type { ConnectionOwner } from './connection.ts';
export { drained } from './drained.ts';
export { bytesTaken } from './taken.ts';
export { Handshakes, offeredProtocols } from './handshake.ts';
export { payloadOf, textFrame } from './text-frame.ts';
export { pathOf, queryOf, refuseUpgrade, Upgrades } from './upgrades.ts';
export type { UpgradeHandler } from './upgrades.ts';
