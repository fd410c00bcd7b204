import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { pino, type DestinationStream, type Logger } from 'pino';
import { redacted } from '#libs/kernel/secrets.ts';

const SECRET_MEMBERS = /"(authorization|cookie|ticket|token|secret|password|api_?key)":"(?:[^"\\]|\\.)*"/gi;
const API_KEYS = /parley_live_[0-9A-Za-z]+/g;
/** Tickets, and any text in the place of a ticket in a websocket protocol. */
const TICKETS = /parley_ticket_[0-9A-Za-z_-]+|(?<=\bticket\.)[0-9A-Za-z_-]{16,}/g;
/** JSON Web Tokens: the first two parts begin with `{"`. */
const TOKENS = /\beyJ[0-9A-Za-z_-]+\.eyJ[0-9A-Za-z_-]+\.[0-9A-Za-z_-]*/g;
const TICKETS_IN_URLS = /([?&]ticket=)[^&\s"#\\]+/gi;

/**
 * Redacts a finished log line: the secrets of this process, API keys, tokens and tickets anywhere (messages, URLs, stacks), and
 * members with a secret name.
 * Works on the line, because a list of paths would miss objects that are logged in the future.
 */
function redact(line: string): string {
  const withoutPatterns = line
    .replace(SECRET_MEMBERS, '"$1":"[redacted]"')
    .replace(API_KEYS, 'parley_live_[redacted]')
    .replace(TICKETS, '[redacted]')
    .replace(TOKENS, '[redacted]')
    .replace(TICKETS_IN_URLS, '$1[redacted]');
  // Last: a secret may be a word that the patterns begin with.
  return redacted(withoutPatterns);
}

/**
 * A logger of JSON lines with level names and RFC 3339 times, secrets redacted.
 *
 * @param destination by default standard output, whose errors cost lines of the log and nothing else
 */
export function createLogger(
  { level = 'info' }: { level?: string } = {},
  destination: DestinationStream = standardOutput(),
): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: redact },
    },
    destination,
  );
}

/** Bytes that wait for a slow reader of standard output; further lines are dropped. */
const MAX_WAITING_BYTES = 1024 * 1024;
const STANDARD_OUTPUT = 1;

interface LogOutput {
  /** Writes a line that ends with a line feed, or counts it as lost. Never throws, and never waits for a reader. */
  write(line: string): void;
}

/**
 * Standard output for a log. A full disk, a closed terminal and a reader that is gone or slow cost lines of the log, but
 * neither stop the process nor delay its end. When lines can be written again, the first line says how many were lost.
 */
function standardOutput(): LogOutput {
  // Without a listener, an error of a stream ends the process.
  if (!process.stdout.listeners('error').includes(ignore)) process.stdout.on('error', ignore);
  // A file is written directly: a stream of Node accepts nothing more after its first error.
  const stdout: unknown = process.stdout;
  return countingLosses(stdout instanceof Socket ? intoStream(stdout) : intoFile(STANDARD_OUTPUT));
}

function ignore(): void {}

type WriteTo = (fd: number, bytes: Uint8Array, offset: number) => number;

/** @returns whether the line was written, or will be */
type Write = (line: string) => boolean;

function intoStream(stream: Socket): Write {
  return (line) => {
    if (stream.destroyed || stream.writableLength > MAX_WAITING_BYTES) return false;
    stream.write(line);
    return true;
  };
}

/** Exported for its test. */
export function intoFile(fd: number, writeTo: WriteTo = writeSync): Write {
  let isInLine = false;
  return (line) => {
    const bytes = Buffer.from(isInLine ? `\n${line}` : line);
    let written = 0;
    try {
      while (written < bytes.length) written += writeTo(fd, bytes, written);
      isInLine = false;
      return true;
    } catch {
      // A disk may have had space for a part of the line. The next line then begins with a line feed.
      isInLine ||= written > 0;
      return false;
    }
  };
}

/** Exported for its test. */
export function countingLosses(write: Write): LogOutput {
  let lost = 0;
  return {
    write(line) {
      if (lost > 0 && write(lossLine(lost))) lost = 0;
      if (lost > 0 || !write(line)) lost += 1;
    },
  };
}

function lossLine(lost: number): string {
  const time = new Date().toISOString();
  return `${JSON.stringify({ level: 'warn', time, lost, msg: 'lines of the log could not be written' })}\n`;
}
