import type { Metrics } from '#libs/platform/telemetry/index.ts';

import { CLOSE } from './close-codes.ts';

/** Clients may close with any code, so all other codes have the label `other`. */
const CODES = new Set<number>([...Object.values(CLOSE), 1001, 1002, 1005, 1006]);

export type LiveMetrics = ReturnType<typeof liveMetrics>;

export function liveMetrics(metrics: Metrics) {
  const closes = metrics.counter('realtime_closes_total', 'Websockets closed, by code', ['code']);
  return {
    subscribers: metrics.gauge('realtime_subscribers', 'Open websockets, and event streams of channels', ['form']),
    entityStreams: metrics.gauge('entity_event_streams', 'Open event streams of single entities, such as crawls'),
    channels: metrics.gauge(
      'realtime_channels',
      'Channels, and other entities with event streams, that this process is subscribed to',
    ),
    keptBytes: metrics.gauge('realtime_kept_bytes', 'Memory of the frames that are kept for replays and gaps'),
    evicted: metrics.counter(
      'realtime_frames_evicted_total',
      'Frames that were dropped because of the limit of that memory',
    ),
    sent: metrics.counter('realtime_frames_sent_total', 'Frames of events sent live, to all subscribers'),
    replayed: metrics.counter('realtime_frames_replayed_total', 'Frames of events sent in replays'),
    gaps: metrics.counter('realtime_gaps_filled_total', 'Gaps in published events that were filled from the log'),
    filled: metrics.counter('realtime_frames_filled_total', 'Events that were read from the log to fill gaps'),
    closed: (code: number): void => closes.add({ code: CODES.has(code) ? String(code) : 'other' }),
  };
}
