import { pino } from 'pino';
import type { DestinationStream, Logger, LoggerOptions } from 'pino';

const SECRET_MEMBERS = /"(authorization|cookie|ticket|token|secret|password|api_?key)":"(?:[^"\\]|\\.)*"/gi;
const API_KEYS = /parley_live_[0-9A-Za-z]+/g;
/** As they are made; and whatever stands where a websocket client puts its ticket. */
const TICKETS = /parley_ticket_[0-9A-Za-z_-]+|(?<=\bticket\.)[0-9A-Za-z_-]{16,}/g;
const TICKETS_IN_URLS = /([?&]ticket=)[^&\s"#\\]+/gi;

/**
 * Takes secrets out of a finished log line: API keys and tickets wherever they stand (messages,
 * URLs, stacks), and whole members whose name says that they are secret. On the line, because a
 * list of paths misses the one object that somebody logs tomorrow.
 */
export function redact(line: string): string {
  return line
    .replace(SECRET_MEMBERS, '"$1":"[redacted]"')
    .replace(API_KEYS, 'parley_live_[redacted]')
    .replace(TICKETS, '[redacted]')
    .replace(TICKETS_IN_URLS, '$1[redacted]');
}

/** Options for pino: JSON lines, level names, RFC 3339 times, secrets redacted. */
export function loggerOptions({ level = 'info', role }: { level?: string; role?: string } = {}): LoggerOptions {
  return {
    level,
    base: role === undefined ? null : { role },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    hooks: { streamWrite: redact },
  };
}

/** @param destination standard output by default */
export function createLogger(options: { level?: string; role?: string } = {}, destination?: DestinationStream): Logger {
  return destination ? pino(loggerOptions(options), destination) : pino(loggerOptions(options));
}
