/*
 * The one place where the features are put together: what each role serves, projects and runs is listed
 * here, by hand, so that the way of a request can be read.
 */
import {
  ChannelCommands,
  ChannelQueries,
  channelProjection,
  channelRoutes,
  participantRoutes,
} from '#libs/features/channels/index.ts';
import type { CommandHandlerOptions, CommandStores } from '#libs/platform/commands/index.ts';
import type { Authenticator, HttpApp } from '#libs/platform/http/index.ts';
import { EntityReader, ProjectionState, Projector } from '#libs/platform/readmodel/index.ts';
import type { AnyProjection } from '#libs/platform/readmodel/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

/** Every kind of stream that becomes a read model. */
const PROJECTIONS: readonly AnyProjection[] = [channelProjection];

export interface ReadModels {
  readonly projector: Projector;
  readonly reader: EntityReader;
  readonly state: ProjectionState;
}

export function composeReadModels({ store, redis, readModel }: Platform): ReadModels {
  const projector = new Projector(store, readModel, PROJECTIONS);
  return { projector, reader: new EntityReader(redis, readModel, projector), state: new ProjectionState(redis) };
}
