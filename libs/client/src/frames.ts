/** The frames of `parley.v1`, as the server declares them. */
import type { components } from './frames.generated.ts';

type Frames = components['schemas'];

export type HelloFrame = Frames['HelloFrame'];
/** The user or service whose ticket opened a connection. */
export type Principal = HelloFrame['principal'];
export type EventFrame = Frames['EventFrame'];
export type DeltaFrame = Frames['DeltaFrame'];
export type SnapshotFrame = Frames['SnapshotFrame'];
export type EphemeralFrame = Frames['EphemeralFrame'];
export type AckFrame = Frames['AckFrame'];
export type ErrorFrame = Frames['ErrorFrame'];
export type CommandFrame = Frames['CommandFrame'];
export type ResumeFrame = Frames['ResumeFrame'];

export type ServerFrame =
  | HelloFrame
  | EventFrame
  | Frames['CaughtUpFrame']
  | DeltaFrame
  | SnapshotFrame
  | EphemeralFrame
  | AckFrame
  | ErrorFrame
  | Frames['PingFrame']
  | Frames['PongFrame'];

export type ClientFrame = ResumeFrame | CommandFrame | Frames['PingFrame'] | Frames['PongFrame'];

export const PROTOCOL: HelloFrame['protocol'] = 'parley.v1';

/** What a subscription can include besides complete root interactions. */
export type Include = NonNullable<ResumeFrame['include']>[number];
