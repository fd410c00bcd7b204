/*
 * WARNING: these names and shapes are the websocket protocol `parley.v1`, on which all clients depend. The AsyncAPI
 * document and the clients' types are generated from them.
 *
 * Frames are JSON texts; the member `frame` names the kind. Frames of clients are parsed strictly: an unknown member is
 * an error, because a misspelt `after` would silently mean something else.
 */
import { z } from 'zod';

import { parseInput, parseJson, parseJsonBody, text, ValidationFailure } from '#libs/platform/http/index.ts';
import { FRAME_FLAG, shownActor } from '#libs/platform/live/index.ts';

// --- Name and limits of the protocol ---

/** The subprotocol that clients offer and the server answers with. */
export const PROTOCOL = 'parley.v1';
/** A client's second subprotocol is this and its ticket. It is never echoed. */
export const TICKET_PREFIX = 'ticket.';
/** Of a member's token in the place of a ticket. */
export const TOKEN_PREFIX = 'token.';

export const MAX_CLIENT_FRAME_BYTES = 64 * 1024;
export const MAX_CLIENT_FRAMES_PER_MINUTE = 120;
/** Milliseconds in which a client must send its `resume`. */
export const RESUME_WAIT_MS = 10_000;

const sequence = () => z.int().min(0);

// --- Frames of a client ---

/** Optional frames: without them, a client gets the data of complete interactions at the top of their tree only. */
export const include = z.enum(['ephemeral', 'nested', 'incomplete']);
export type Include = z.infer<typeof include>;

/** As a mask of `FRAME_FLAG`, whose flags have the same names. */
export function maskOf(included: readonly Include[]): number {
  return included.reduce((mask, one) => mask | FRAME_FLAG[one], 0);
}

export const resumeFrame = z
  .strictObject({
    frame: z.literal('resume'),
    after: sequence()
      .optional()
      .describe('Sequence of the last event received, however old (0: from the beginning). Default: only new events'),
    include: z
      .array(include)
      .max(16)
      .optional()
      .describe(
        '`nested`: interactions with a parent; `incomplete`: interactions in progress, with deltas of their text; ' +
          '`ephemeral`: typing indicators, updates of running tool calls, and moves of the own read marker',
      ),
  })
  .meta({
    id: 'ResumeFrame',
    description: 'The first frame of a client: the sequence to resume after',
  });
export type ResumeFrame = z.infer<typeof resumeFrame>;

const commandId = text({ min: 1, max: 255 });

export const commandFrame = z
  .strictObject({
    frame: z.literal('command'),
    id: commandId.describe(
      'Correlates the response with the command. A UUID also identifies the command across connections, so it runs once even if it is sent again',
    ),
    type: text({ min: 1, max: 64 }),
    data: z.unknown().optional().describe('Depends on the type'),
  })
  .meta({ id: 'CommandFrame', description: 'A command; answered by `ack` or `error` with the same id' });
export type CommandFrame = z.infer<typeof commandFrame>;

const pingFrame = z
  .strictObject({ frame: z.literal('ping') })
  .meta({ id: 'PingFrame', description: 'Asks for a `pong`' });
const pongFrame = z
  .strictObject({ frame: z.literal('pong') })
  .meta({ id: 'PongFrame', description: 'Answers a `ping`' });

export const clientFrame = z.discriminatedUnion('frame', [resumeFrame, commandFrame, pingFrame, pongFrame]);
export type ClientFrame = z.infer<typeof clientFrame>;

// --- Frames of the server ---

const helloFrame = z
  .object({
    frame: z.literal('hello'),
    protocol: z.literal(PROTOCOL),
    session_id: z.string().describe('Identifies this connection in logs and for support'),
    channel_id: z.string(),
    principal: z
      .object({ type: z.enum(['user', 'service', 'system']), id: z.string() })
      .describe('Whose ticket opened the connection'),
    head: sequence().describe("Sequence of the channel's newest event"),
    heartbeat_ms: z.int().min(1).describe('Milliseconds between the pings of the server'),
    max_frame_bytes: z.int().min(1).describe('Size of the largest frame that a client may send'),
  })
  .meta({ id: 'HelloFrame', description: 'The first frame of the server' });

export const eventFrameEnvelope = z
  .object({
    frame: z.literal('event'),
    seq: z.int().min(1).describe('One more than that of the event before it'),
    type: z.string().describe('Type of the event; `unknown` for one that this version of the server does not know'),
    at: z.iso.datetime().describe('Time of the event'),
    actor: shownActor.nullable().describe('Who did it; null for an event of another application'),
    changed: z.array(z.string()).optional().describe('Names of the members that `channel.updated` is about'),
    data: z
      .unknown()
      .describe('The resource after the event, in the representation of REST; null if the client did not opt in to it'),
  })
  .meta({ id: 'EventFrame', description: 'An event of the channel: durable, in order' });

const caughtUpFrame = z
  .object({ frame: z.literal('caught_up'), seq: sequence() })
  .meta({ id: 'CaughtUpFrame', description: 'All events up to `seq` have been sent; what follows is live' });

const interactionId = z.string().describe('`id` of the incomplete interaction');

const deltaFrame = z
  .object({
    frame: z.literal('delta'),
    interaction_id: interactionId,
    offset: z
      .int()
      .min(0)
      .describe('UTF-16 code units before this text; apply the delta only if exactly this many were received'),
    text: z.string(),
  })
  .meta({ id: 'DeltaFrame', description: 'Text appended to the draft of an incomplete interaction' });

const snapshotFrame = z
  .object({ frame: z.literal('snapshot'), interaction_id: interactionId, text: z.string() })
  .meta({ id: 'SnapshotFrame', description: 'The complete draft of an incomplete interaction' });

const ephemeralFrame = z
  .object({
    frame: z.literal('ephemeral'),
    key: z.string().describe('A newer frame replaces an older one with the same key'),
    n: z.number().describe('Increases with each frame of a key; one with a lower number is out of date'),
    data: z.unknown(),
    ttl_ms: z.int().min(0).describe('Milliseconds after which to discard the value'),
  })
  .meta({ id: 'EphemeralFrame', description: 'An ephemeral value: not stored in the channel, and may be lost' });

const ackFrame = z
  .object({
    frame: z.literal('ack'),
    id: z.string(),
    seq: sequence().nullable().describe('Sequence of the channel after the command; null for a command without events'),
  })
  .meta({ id: 'AckFrame', description: 'A command has succeeded, and its events are durable' });

const validationError = z
  .object({
    type: z.string(),
    loc: z.array(z.union([z.string(), z.number()])),
    msg: z.string(),
    input: z.unknown().optional(),
    ctx: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ id: 'FrameValidationError' });

const errorFrame = z
  .object({
    frame: z.literal('error'),
    id: z.string().optional().describe('`id` of the command that failed'),
    code: z.string(),
    detail: z
      .union([z.string(), z.array(validationError)])
      .describe('A message; for invalid input a list of validation errors, as in REST'),
    retry_after: z.number().optional().describe('Seconds after which the same command may succeed'),
  })
  .meta({ id: 'ErrorFrame', description: 'A command was refused, or a frame is invalid' });
export type ErrorDetail = z.infer<typeof errorFrame>['detail'];

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

// --- Decoding and encoding ---

/** The `error` frame for an invalid frame. */
export interface FrameRefusal {
  readonly code: 'invalid_json' | 'invalid_frame' | 'invalid_resume' | 'invalid_command';
  readonly detail: ErrorDetail;
  /** `id` of the command, if it could be read. */
  readonly id?: string;
}

/** Decodes a frame of a client. Never throws, whatever the bytes are. */
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

/** JSON that is refused for one of its parts, such as a number, still has a known kind of frame. */
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

/** Limits of an error's size: each fault could repeat the whole input. */
const MAX_FAULTS = 20;
const MAX_INPUT = 256;

/** The faults of an input, as in REST, without inputs that are long. */
export function faultsOf({ errors }: ValidationFailure): Exclude<ErrorDetail, string> {
  return errors.slice(0, MAX_FAULTS).map(({ input, loc, ...fault }) => {
    const isShort = (JSON.stringify(input)?.length ?? 0) <= MAX_INPUT;
    return { ...fault, loc: [...loc], ...(isShort && { input }) };
  });
}

/** The JSON of a frame; `frame` comes first. */
export function encodeFrame({ frame, ...members }: ServerFrame): string {
  return JSON.stringify({ frame, ...members });
}
export const PING = encodeFrame({ frame: 'ping' });
export const PONG = encodeFrame({ frame: 'pong' });
