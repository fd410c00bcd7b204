/** The entity kit: one declaration gives a kind of entity its projection, commands, reads and HTTP replies. */
export { digestFacet, entity, firstWordFacet } from './entity.ts';
export type { Facets } from './entity.ts';
export { Entities } from './entities.ts';
export type { EntityCore, EntityResult, NotFound, SharedStream } from './entities.ts';
export { EventStreams, grantFor, openLiveStream, sendEventStream } from './event-streams.ts';
export { EntityReplies } from './entity-replies.ts';
export { declareReads } from './reads.http.ts';
export type { Presentation, RejectionErrors } from './entity-replies.ts';
