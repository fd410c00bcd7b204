// Requests about groups, parsed from the generated messages. Clients of different
// versions use different fields for the same value.
import type { CreateReq, ReadReq, UpdateReq } from '@eventstore/db-client/generated/persistent_pb.js';
import type { StreamIdentifier, UUID } from '@eventstore/db-client/generated/shared_pb.js';
import { createFilter, parseExpression, type FilterExpression } from '../grpc/filter.ts';
import { invalidArgument } from '../grpc/errors.ts';
import { parseStreamName, parseUuid } from '../grpc/proposed-event.ts';
import { ALL, strategyNames, type GroupName, type GroupSettings, type StartFrom } from './group-settings.ts';
import type { NackAction } from './group.ts';

/** The revision that older clients send for the end. */
const END_REVISION = '18446744073709551615';
const TICKS_PER_MS = 10_000;

type NameOptions = {
  getAll(): unknown;
  getStreamIdentifier(): StreamIdentifier | undefined;
  getGroupName(): string;
};

/** @throws CallError when a name is missing */
export function parseGroupName(options: NameOptions | undefined): GroupName {
  if (!options) throw invalidArgument('The request has no options.');
  const group = options.getGroupName();
  if (group === '') throw invalidArgument('A group needs a name.');
  return { source: options.getAll() ? ALL : parseStreamName(options.getStreamIdentifier()), group };
}

/** @throws CallError */
export function parseDefinition(options: CreateReq.Options | UpdateReq.Options | undefined): {
  name: GroupName;
  settings: GroupSettings;
} {
  const settings = options?.getSettings();
  if (!options || !settings) throw invalidArgument('The request has no options or settings.');
  const stream = options.getStream();
  const name = parseGroupName({
    getAll: () => options.getAll(),
    getStreamIdentifier: () => stream?.getStreamIdentifier() ?? options.getStreamIdentifier(),
    getGroupName: () => options.getGroupName(),
  });
  const startFrom = parseStart(options.getAll() ?? stream, settings.getRevision());
  return { name, settings: parseSettings(settings, startFrom) };
}

type StartOptions = CreateReq.AllOptions | CreateReq.StreamOptions | UpdateReq.AllOptions | UpdateReq.StreamOptions;

function parseStart(options: StartOptions | undefined, oldRevision: string): StartFrom {
  if (!options) return oldRevision === END_REVISION ? 'end' : Number(oldRevision) || 'start';
  if (options.hasEnd()) return 'end';
  if ('getPosition' in options) return Number(options.getPosition()?.getCommitPosition() ?? 0) || 'start';
  return Number(options.getRevision()) || 'start';
}

function parseSettings(settings: CreateReq.Settings | UpdateReq.Settings, startFrom: StartFrom): GroupSettings {
  return {
    startFrom,
    resolveLinks: settings.getResolveLinks(),
    extraStatistics: settings.getExtraStatistics(),
    messageTimeoutMs: settings.hasMessageTimeoutMs()
      ? settings.getMessageTimeoutMs()
      : Number(settings.getMessageTimeoutTicks()) / TICKS_PER_MS,
    maxRetryCount: settings.getMaxRetryCount(),
    checkpointAfterMs: settings.hasCheckpointAfterMs()
      ? settings.getCheckpointAfterMs()
      : Number(settings.getCheckpointAfterTicks()) / TICKS_PER_MS,
    minCheckpointCount: settings.getMinCheckpointCount(),
    maxCheckpointCount: settings.getMaxCheckpointCount(),
    maxSubscriberCount: settings.getMaxSubscriberCount(),
    liveBufferSize: settings.getLiveBufferSize(),
    readBatchSize: settings.getReadBatchSize(),
    historyBufferSize: settings.getHistoryBufferSize(),
    strategy: parseStrategy(settings),
  };
}

function parseStrategy(settings: CreateReq.Settings | UpdateReq.Settings): GroupSettings['strategy'] {
  const named = 'getConsumerStrategy' in settings ? settings.getConsumerStrategy() : '';
  const strategy = strategyNames.find(
    (name, number) => named === name || (named === '' && number === settings.getNamedConsumerStrategy()),
  );
  if (!strategy) throw invalidArgument(`Consumer strategy '${named}' is not supported.`);
  return strategy;
}

/** @throws CallError for an invalid expression */
export function parseGroupFilter(options: CreateReq.AllOptions | undefined): FilterExpression | undefined {
  const filter = options?.getFilter();
  if (!filter) return undefined;
  const expression = parseExpression(filter);
  createFilter(expression);
  return expression;
}

export function parseIds(ids: readonly UUID[]): string[] {
  return ids.map((id) => parseUuid(Buffer.from(id.serializeBinary())));
}

/** In the order of the protocol's numbers; an unknown number is a retry. */
const actions: readonly NackAction[] = ['retry', 'park', 'retry', 'skip', 'stop'];

export function parseAction(nack: ReadReq.Nack): NackAction {
  return actions[nack.getAction()] ?? 'retry';
}
