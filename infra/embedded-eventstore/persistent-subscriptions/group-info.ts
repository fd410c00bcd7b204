// Describes a group for GetInfo and List. Rates are averages since the previous response.
import persistent from '@eventstore/db-client/generated/persistent_pb.js';
import type { Consumer } from './consumer.ts';
import type { Group } from './group.ts';
import { ALL } from './group-settings.ts';

type Info = InstanceType<typeof persistent.SubscriptionInfo>;
type Measured = { totalItems: number; at: number };

const lastMeasured = new WeakMap<Group | Consumer, Measured>();

export function groupInfo(group: Group): Info {
  const { source, group: name } = group.record;
  const { count, perSecond } = measure(group);
  const offset = (value: number | undefined) => (value === undefined ? '' : formatOffset(source, value));
  const info = new persistent.SubscriptionInfo().setEventSource(source).setGroupName(name);
  info.setStatus(group.isLive ? 'Live' : 'Behind');
  info.setConnectionsList(group.consumers.map(connectionInfo));
  info.setAveragePerSecond(perSecond).setCountSinceLastMeasurement(String(count));
  info.setTotalItems(String(group.totalItems));
  info.setLastCheckpointedEventPosition(offset(group.checkpointer.written));
  info.setLastKnownEventPosition(offset(group.lastKnownOffset));
  info.setReadBufferCount(group.queueLength).setLiveBufferCount('0').setRetryBufferCount(group.retries.length);
  info.setTotalInFlightMessages(group.inFlightCount);
  info.setOutstandingMessagesCount(group.inFlightCount + group.parkingCount);
  info.setParkedMessageCount(String(group.parked.count));
  return addSettings(info, group);
}

function addSettings(info: Info, { record }: Group): Info {
  const { settings, source } = record;
  const { startFrom } = settings;
  const first = startFrom === 'start' ? 0 : startFrom === 'end' ? -1 : startFrom;
  info.setResolveLinkTos(settings.resolveLinks).setStartFrom(formatOffset(source, first));
  info.setMessageTimeoutMilliseconds(settings.messageTimeoutMs).setExtraStatistics(settings.extraStatistics);
  info.setMaxRetryCount(settings.maxRetryCount).setLiveBufferSize(settings.liveBufferSize);
  info.setBufferSize(settings.historyBufferSize).setReadBatchSize(settings.readBatchSize);
  info.setCheckPointAfterMilliseconds(settings.checkpointAfterMs);
  info.setMinCheckPointCount(settings.minCheckpointCount).setMaxCheckPointCount(settings.maxCheckpointCount);
  info.setNamedConsumerStrategy(settings.strategy).setMaxSubscriberCount(settings.maxSubscriberCount);
  return info;
}

function connectionInfo(consumer: Consumer) {
  const { from, connectionName, bufferSize } = consumer.options;
  const { count, perSecond } = measure(consumer);
  const info = new persistent.SubscriptionInfo.ConnectionInfo().setFrom(from).setUsername('anonymous');
  info.setAverageItemsPerSecond(perSecond).setCountSinceLastMeasurement(String(count));
  info.setTotalItems(String(consumer.totalItems)).setConnectionName(connectionName);
  info.setInFlightMessages(consumer.inFlightCount).setAvailableSlots(bufferSize - consumer.inFlightCount);
  const measurements = consumer.latencies?.measurements() ?? [];
  info.setObservedMeasurementsList(
    measurements.map(({ key, value }) =>
      new persistent.SubscriptionInfo.Measurement().setKey(key).setValue(String(value)),
    ),
  );
  return info;
}

function measure(counted: Group | Consumer): { count: number; perSecond: number } {
  const now = { totalItems: counted.totalItems, at: performance.now() };
  const before = lastMeasured.get(counted);
  lastMeasured.set(counted, now);
  if (!before) return { count: now.totalItems, perSecond: 0 };
  const count = now.totalItems - before.totalItems;
  const seconds = (now.at - before.at) / 1000;
  return { count, perSecond: seconds > 0 ? Math.round(count / seconds) : 0 };
}

/** A revision is a number, a position in `$all` a pair. */
function formatOffset(source: string, offset: number): string {
  return source === ALL ? `C:${offset}/P:${offset}` : String(offset);
}
