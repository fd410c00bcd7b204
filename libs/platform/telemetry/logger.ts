import { pino, type DestinationStream, type Logger } from 'pino';
import { redacted } from '#libs/kernel/secrets.ts';

import { standardOutput } from './log-output.ts';

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
  { level = 'info', role }: { level?: string; role?: string } = {},
  destination: DestinationStream = standardOutput(),
): Logger {
  return pino(
    {
      level,
      base: role === undefined ? null : { role },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: redact },
    },
    destination,
  );
}
