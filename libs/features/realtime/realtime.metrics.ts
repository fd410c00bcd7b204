import type { Metrics } from '#libs/platform/telemetry/index.ts';

import { CLOSE } from './protocol.ts';

/** A client chooses its code at will: other codes share one label. */
const CODES = new Set<number>([...Object.values(CLOSE), 1001, 1002, 1005, 1006]);

export type RealtimeMetrics = ReturnType<typeof realtimeMetrics>;

export function realtimeMetrics(metrics: Metrics) {
  const subscribers = metrics.gauge('realtime_subscribers', 'Open websockets and event streams', ['form']);
  const channels = metrics.gauge('realtime_channels', 'Channels that this process is subscribed to');
  const sent = metrics.counter('realtime_frames_sent_total', 'Frames of events sent live, to all subscribers');
  const replayed = metrics.counter('realtime_frames_replayed_total', 'Frames of events sent in replays');
  const gaps = metrics.counter('realtime_gaps_filled_total', 'Gaps in published events that were filled from the log');
  const filled = metrics.counter('realtime_frames_filled_total', 'Events that were read from the log to fill gaps');
  const closes = metrics.counter('realtime_closes_total', 'Websockets closed, by code', ['code']);
  return {
    subscribers: (form: 'websocket' | 'event-stream', open: number): void => subscribers.set(open, { form }),
    channels: (open: number): void => channels.set(open),
    /** Frames of events, to all subscribers together. */
    sent: (frames: number): void => sent.add({}, frames),
    replayed: (frames: number): void => replayed.add({}, frames),
    /** A gap of so many events was filled from the log. */
    filled(frames: number): void {
      gaps.add();
      filled.add({}, frames);
    },
    closed: (code: number): void => closes.add({ code: CODES.has(code) ? String(code) : 'other' }),
  };
}
