import type { ChannelSequence } from '#libs/kernel/event.ts';

/** What is to be known of a frame without reading it; a bit mask. */
export const FRAME_FLAG = {
  /** An interaction below another one. */
  nested: 1,
  /** An interaction that is not complete after the event. */
  incomplete: 2,
  /** Nothing of the log: may be dropped. */
  ephemeral: 4,
  /** Who may listen to the channel, or whether it goes on, has changed. */
  access: 8,
} as const;

/** Type of the frames of events that this version does not know. */
export const UNKNOWN_EVENT = 'unknown';

/** The frame of one event of a channel, as it is sent. */
export interface EventFrame {
  readonly sequence: ChannelSequence;
  /** A mask of `FRAME_FLAG`. */
  readonly flags: number;
  /** JSON text of the whole frame, on one line. */
  readonly json: string;
}

/** JSON that is there already, to be taken as it is. It must be on one line. */
export interface ReadyJson {
  readonly json: string;
}

export interface EventFrameParts {
  readonly sequence: ChannelSequence;
  /** Such as `interaction.posted`. */
  readonly type: string;
  /** RFC 3339: when the command was decided that led to the event. */
  readonly at: string;
  /** What has changed, as it is after the event. */
  readonly data: ReadyJson | null;
  readonly flags: number;
}

const DATA = ',"data":';

/** The same parts give the same bytes: what is published and what is read from the log must not differ. */
export function eventFrame({ sequence, type, at, data, flags }: EventFrameParts): EventFrame {
  const head = `{"frame":"event","seq":${sequence},"type":${JSON.stringify(type)},"at":${JSON.stringify(at)}`;
  return { sequence, flags, json: `${head}${DATA}${data === null ? 'null' : data.json}}` };
}

/** The frame for who has not asked for such data: it takes its place in the sequence, and says no more. */
export function withoutData(json: string): string {
  // In front of it there are only texts and a number, and in a text the quotes are escaped.
  return `${json.slice(0, json.indexOf(DATA))}${DATA}null}`;
}
