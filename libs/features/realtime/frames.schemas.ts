/*
 * WARNING: these names and shapes are the websocket protocol `parley.v1`, and what every client is written
 * against. The AsyncAPI document and the clients' types are made of them.
 *
 * Frames are JSON texts; the member `frame` names the kind. What a client sends is judged strictly: a member
 * that nobody knows is refused, for a misspelt `after` would silently mean another thing.
 */
import { z } from 'zod';

import { parseInput, parseJson, parseJsonBody, text, ValidationFailure } from '#libs/platform/http/index.ts';

import { PROTOCOL } from './protocol.ts';

const sequence = () => z.int().min(0);

// --- What a client sends ---

/** What a socket can ask for besides the finished interactions that stand at the top of their tree. */
export const include = z.enum(['ephemeral', 'nested', 'incomplete']);
export type Include = z.infer<typeof include>;

export const resumeFrame = z
  .strictObject({
    frame: z.literal('resume'),
    after: sequence()
      .optional()
      .describe('Sequence of the last event seen, however old (0: from the beginning); without it, only what is new'),
    include: z
      .array(include)
      .max(16)
      .optional()
      .describe(
        '`nested`: interactions below others; `incomplete`: those being written, with their text as it grows; ' +
          '`ephemeral`: typing and tool calls that run',
      ),
  })
  .meta({ id: 'ResumeFrame', description: 'The first frame of a client: from where on it wants the events' });
export type ResumeFrame = z.infer<typeof resumeFrame>;

/** The longest id that a client can give a command. */
export const MAX_COMMAND_ID = 255;
const commandId = text({ min: 1, max: MAX_COMMAND_ID });

export const commandFrame = z
  .strictObject({
    frame: z.literal('command'),
    id: commandId.describe(
      'Names the command in its answer. A UUID names it across connections too: sent again, it is done once',
    ),
    type: text({ min: 1, max: 64 }).describe('What to do'),
    data: z.unknown().optional().describe('As the type asks for'),
  })
  .meta({ id: 'CommandFrame', description: 'Something to do; answered by `ack` or `error` with the same id' });
export type CommandFrame = z.infer<typeof commandFrame>;

export const pingFrame = z
  .strictObject({ frame: z.literal('ping') })
  .meta({ id: 'PingFrame', description: 'Asks for a `pong`' });
export const pongFrame = z
  .strictObject({ frame: z.literal('pong') })
  .meta({ id: 'PongFrame', description: 'Answers a `ping`' });

export const clientFrame = z.discriminatedUnion('frame', [resumeFrame, commandFrame, pingFrame, pongFrame]);
export type ClientFrame = z.infer<typeof clientFrame>;

// --- What the server sends ---

export const helloFrame = z
  .object({
    frame: z.literal('hello'),
    protocol: z.literal(PROTOCOL),
    session_id: z.string().describe('Names this connection in logs and to support'),
    channel_id: z.string(),
    head: sequence().describe("Sequence of the channel's newest event"),
    heartbeat_ms: z.int().min(1).describe('Milliseconds between the pings of the server'),
    max_frame_bytes: z.int().min(1).describe('Size of the largest frame that a client may send'),
  })
  .meta({ id: 'HelloFrame', description: 'The first frame of the server' });
export type HelloFrame = z.infer<typeof helloFrame>;

export const eventFrameEnvelope = z
  .object({
    frame: z.literal('event'),
    seq: z.int().min(1).describe('One more than that of the event before it'),
    type: z.string().describe('What happened; `unknown` for what this version of the server does not know'),
    at: z.iso.datetime().describe('When it happened'),
    data: z
      .unknown()
      .describe('What has changed, as REST shows it after the event; null where the socket has not asked for it'),
  })
  .meta({ id: 'EventFrame', description: 'Something that happened in the channel: kept for good, in order' });
export type EventFrameEnvelope = z.infer<typeof eventFrameEnvelope>;

export const caughtUpFrame = z
  .object({ frame: z.literal('caught_up'), seq: sequence() })
  .meta({ id: 'CaughtUpFrame', description: 'All events up to `seq` have been sent; what follows is live' });
export type CaughtUpFrame = z.infer<typeof caughtUpFrame>;

const interactionId = z.string().describe('`id` of the interaction that is being written');

export const deltaFrame = z
  .object({
    frame: z.literal('delta'),
    interaction_id: interactionId,
    offset: z.int().min(0).describe('UTF-16 code units that come before; apply it only if that many are held'),
    text: z.string(),
  })
  .meta({ id: 'DeltaFrame', description: 'More text of an interaction that is being written' });
export type DeltaFrame = z.infer<typeof deltaFrame>;

export const snapshotFrame = z
  .object({ frame: z.literal('snapshot'), interaction_id: interactionId, text: z.string() })
  .meta({ id: 'SnapshotFrame', description: 'All text so far of an interaction that is being written' });
export type SnapshotFrame = z.infer<typeof snapshotFrame>;

export const ephemeralFrame = z
  .object({
    frame: z.literal('ephemeral'),
    key: z.string().describe('What it is about: a newer one replaces an older one with the same key'),
    n: z.number().describe('Grows with each of a key; one with a lower number is out of date'),
    data: z.unknown(),
    ttl_ms: z.int().min(0).describe('Forget it after so many milliseconds'),
  })
  .meta({ id: 'EphemeralFrame', description: 'Something of the moment: never stored, and lost if nobody listens' });
export type EphemeralFrame = z.infer<typeof ephemeralFrame>;

export const ackFrame = z
  .object({
    frame: z.literal('ack'),
    id: z.string(),
    seq: sequence().nullable().describe('The channel after it; null for what leaves nothing in the channel'),
  })
  .meta({ id: 'AckFrame', description: 'A command is done, and what it wrote is durable' });
export type AckFrame = z.infer<typeof ackFrame>;

const validationError = z
  .object({
    type: z.string(),
    loc: z.array(z.union([z.string(), z.number()])),
    msg: z.string(),
    input: z.unknown().optional(),
    ctx: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ id: 'FrameValidationError' });

export const errorFrame = z
  .object({
    frame: z.literal('error'),
    id: z.string().optional().describe('Of the command that it answers'),
    code: z.string(),
    detail: z
      .union([z.string(), z.array(validationError)])
      .describe('A sentence; or, for input that does not fit, each fault, as REST lists them'),
    retry_after: z.number().optional().describe('Seconds after which the same may succeed'),
  })
  .meta({ id: 'ErrorFrame', description: 'A command was refused, or a frame was not understood' });
export type ErrorFrame = z.infer<typeof errorFrame>;
/** What an error says: a sentence, or the faults of the input. */
export type ErrorDetail = ErrorFrame['detail'];

export const serverFrame = z.discriminatedUnion('frame', [
  helloFrame,
  eventFrameEnvelope,
  caughtUpFrame,
  deltaFrame,
  snapshotFrame,
  ephemeralFrame,
  ackFrame,
  errorFrame,
  pingFrame,
  pongFrame,
]);
export type ServerFrame = z.infer<typeof serverFrame>;

// --- Reading and writing them ---

/** Why a frame was not understood, as the `error` frame says it. */
export interface FrameRefusal {
  readonly code: 'invalid_json' | 'invalid_frame' | 'invalid_resume' | 'invalid_command';
  readonly detail: ErrorDetail;
  /** Of the command, where so much could be read. */
  readonly id?: string;
}

/** Reads what a client sent: a frame, or why it is none. Never throws, whatever the bytes are. */
export function decodeClientFrame(bytes: Buffer): { ok: true; frame: ClientFrame } | ({ ok: false } & FrameRefusal) {
  let value: unknown;
  try {
    value = parseJsonBody(bytes, 'frame');
  } catch (error) {
    return { ok: false, ...refusalOfText(bytes, error), detail: detailOf(error) };
  }
  if (value === undefined) return { ok: false, code: 'invalid_json', detail: 'The frame is empty' };
  try {
    return { ok: true, frame: parseInput(clientFrame, value, 'frame') };
  } catch (error) {
    return { ok: false, ...refusalOf(value), detail: detailOf(error) };
  }
}

/** Of JSON that is refused for a part of it (a name, a number), the rest says which frame it is. */
function refusalOfText(bytes: Buffer, error: unknown): Omit<FrameRefusal, 'detail'> {
  if (!(error instanceof ValidationFailure) || error.errors.some(({ type }) => type === 'json_invalid')) {
    return { code: 'invalid_json' };
  }
  return refusalOf(parseJson(new TextDecoder().decode(bytes)));
}

const ofKind = z.object({ frame: z.enum(['resume', 'command']), id: commandId.optional().catch(undefined) });

function refusalOf(value: unknown): Omit<FrameRefusal, 'detail'> {
  const { data } = ofKind.safeParse(value);
  if (data?.frame === 'resume') return { code: 'invalid_resume' };
  if (data?.frame !== 'command') return { code: 'invalid_frame' };
  return { code: 'invalid_command', ...(data.id !== undefined && { id: data.id }) };
}

function detailOf(error: unknown): ErrorDetail {
  if (!(error instanceof ValidationFailure)) throw error;
  return faultsOf(error);
}

/** What is told of a refused input is bounded: each fault could carry as much of it as was sent. */
const MAX_FAULTS = 20;
const MAX_INPUT = 256;

/** The faults of an input as REST tells them; the input itself where it is short. */
export function faultsOf({ errors }: ValidationFailure): Exclude<ErrorDetail, string> {
  return errors.slice(0, MAX_FAULTS).map(({ input, loc, ...fault }) => {
    const isShort = (JSON.stringify(input)?.length ?? 0) <= MAX_INPUT;
    return { ...fault, loc: [...loc], ...(isShort && { input }) };
  });
}

/** The text of a frame; `frame` comes first, whatever the order of the members was. */
export function encodeFrame({ frame, ...members }: ServerFrame): string {
  return JSON.stringify({ frame, ...members });
}
export const PING = encodeFrame({ frame: 'ping' });
export const PONG = encodeFrame({ frame: 'pong' });
