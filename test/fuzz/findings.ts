import type { Exchange } from './schemathesis.ts';

/** An event of the log, with the id of the request that caused it. */
export interface CausedEvent {
  readonly stream: string;
  readonly type: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/**
 * Problems, one line each. An event names the request that caused it (`$correlationId`), so each must lead to an
 * accepted request; a run in which all requests were refused, or none, proves nothing.
 */
export function findingsOf(exchanges: readonly Exchange[], events: readonly CausedEvent[]): string[] {
  const accepted = new Set(exchanges.filter(isAccepted).map(({ requestId }) => requestId));
  const refusals = new Map(exchanges.filter((one) => !isAccepted(one)).map((one) => [one.requestId, one]));
  const findings: string[] = [];
  for (const { method, path, status } of exchanges) {
    if (status === null) findings.push(`${method} ${path}: no answer`);
    else if (status >= 500) findings.push(`${method} ${path}: ${status}`);
  }
  for (const { stream, type, metadata } of events) {
    const id = String(metadata['$correlationId']);
    if (accepted.has(id)) continue;
    const refused = refusals.get(id);
    const cause = refused ? `${refused.method} ${refused.path}, which was answered ${refused.status}` : 'no request';
    findings.push(`${type} in ${stream} was written by ${cause}`);
  }
  const commands = exchanges.filter(({ method }) => method !== 'GET');
  if (!commands.some(isAccepted)) findings.push('no command was accepted: the run proves nothing');
  if (commands.every(isAccepted)) findings.push('no command was refused: the run proves nothing');
  if (events.length === 0) findings.push('no event was written: the run proves nothing');
  return findings;
}

function isAccepted({ status }: Exchange): boolean {
  return status !== null && status >= 200 && status < 300;
}
