import type { Metrics } from '#libs/platform/telemetry/index.ts';

import { CLOSE } from './protocol.ts';

/** What the node counts. */
export interface RealtimeMetrics {
  listeners(form: 'websocket' | 'event-stream', open: number): void;
  channels(open: number): void;
  /** Frames of events, to all listeners together. */
  sent(frames: number): void;
  replayed(frames: number): void;
  /** `frames` were missing from the topic, and came from the log. */
  filled(frames: number): void;
  closed(code: number): void;
}

/** Codes that a peer may choose at will would be labels without end. */
const CODES = new Set<number>([...Object.values(CLOSE), 1001, 1002, 1005, 1006]);

export function realtimeMetrics(metrics: Metrics): RealtimeMetrics {
  const listeners = metrics.gauge('realtime_listeners', 'Open websockets and event streams', ['form']);
  const channels = metrics.gauge('realtime_channels', 'Channels that this process listens to');
  const sent = metrics.counter('realtime_frames_sent_total', 'Frames of events written live, to all listeners');
  const replayed = metrics.counter('realtime_frames_replayed_total', 'Frames of events written to who resumed');
  const holes = metrics.counter('realtime_holes_filled_total', 'Times that published events were missing');
  const filled = metrics.counter('realtime_frames_filled_total', 'Events that came from the log for such a time');
  const closes = metrics.counter('realtime_closes_total', 'Websockets closed, by code', ['code']);
  return {
    listeners: (form, open) => listeners.set(open, { form }),
    channels: (open) => channels.set(open),
    sent: (frames) => sent.add({}, frames),
    replayed: (frames) => replayed.add({}, frames),
    filled(frames) {
      holes.add();
      filled.add({}, frames);
    },
    closed: (code) => closes.add({ code: CODES.has(code) ? String(code) : 'other' }),
  };
}
