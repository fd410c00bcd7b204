/*
 * Websocket frames of a server (RFC 6455, 5.2): final, not masked, not compressed. A frame is encoded once and written to
 * any number of sockets.
 */
const FINAL_TEXT = 0x81;
const BYTES_16 = 126;
const BYTES_64 = 127;

/** A text frame with `payload`, which must be UTF-8. */
export function textFrame(payload: Buffer | string): Buffer {
  const length = typeof payload === 'string' ? Buffer.byteLength(payload) : payload.length;
  const head = headLength(length);
  const frame = Buffer.allocUnsafe(head + length);
  frame[0] = FINAL_TEXT;
  if (head === 2) frame[1] = length;
  else if (head === 4) {
    frame[1] = BYTES_16;
    frame.writeUInt16BE(length, 2);
  } else {
    frame[1] = BYTES_64;
    frame.writeUIntBE(0, 2, 2);
    frame.writeUIntBE(length, 4, 6);
  }
  if (typeof payload === 'string') frame.write(payload, head);
  else payload.copy(frame, head);
  return frame;
}

/** The payload of a frame that {@link textFrame} made; shares its memory. */
export function payloadOf(frame: Buffer): Buffer {
  const short = (frame[1] ?? 0) & 0x7f;
  return frame.subarray(short === BYTES_64 ? 10 : short === BYTES_16 ? 4 : 2);
}

function headLength(payloadLength: number): number {
  if (payloadLength < BYTES_16) return 2;
  return payloadLength < 2 ** 16 ? 4 : 10;
}
