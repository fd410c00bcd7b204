/** Checks the log of runs that answer numbered questions; it never queries the system. */
import type { LogEvent } from '../log-reader.ts';
import { answerTo, TOOL_CALLS } from './questions.ts';

const ENDS = new Set(['RunCompleted.v1', 'RunFailed.v1', 'RunCancelled.v1']);

export function isEnd({ type }: LogEvent): boolean {
  return ENDS.has(type);
}

/** @param log the streams of runs and of their channels @returns one line per disagreement; empty when all is well */
export function runProblems(log: readonly LogEvent[]): string[] {
  const streams = Map.groupBy(log, ({ stream }) => stream);
  const channels = [...streams].filter(([stream]) => stream.startsWith('channel-'));
  const posts = channels.flatMap(([, events]) => events.filter(({ type }) => type === 'InteractionPosted.v1'));
  const shown = Map.groupBy(
    channels.flatMap(([, events]) => events),
    (event) => turnOf(event, streams.get(event.stream) ?? []),
  );
  const runs = [...streams].filter(([stream]) => stream.startsWith('run-'));
  return [
    ...runs.flatMap(([stream, events]) => problemsOfRun(stream, events)),
    ...runs.flatMap(([stream, events]) => {
      const channel = streams.get(`channel-${events[0]?.data['channelId']}`) ?? [];
      const ofTurn = shown.get(String(events[0]?.data['turnId'])) ?? [];
      return problemsOfTree(stream, ofTurn, questionOf(events, channel));
    }),
    ...repeated(log.map(({ id, stream }) => `${stream} ${id}`)).map((one) => `stored twice: ${one}`),
    ...repeated(posts.map(({ data }) => String(data['spanId']))).map((span) => `posted twice: the span ${span}`),
  ];
}

/** The turn of an event, which it names itself or by the sequence of an interaction. */
function turnOf({ data }: LogEvent, channel: readonly LogEvent[]): string {
  return String(data['turnId'] ?? channel[Number(data['sequence']) - 1]?.data['turnId']);
}

function problemsOfRun(stream: string, events: readonly LogEvent[]): string[] {
  const count = (type: string): number => events.filter((event) => event.type === type).length;
  const ends = events.filter(isEnd);
  const calls = events.filter(({ type }) => type === 'ToolStepFinished.v1').map(({ data }) => String(data['callId']));
  return [
    ...expected(`${stream}: RunRequested`, count('RunRequested.v1'), 1),
    ...expected(`${stream}: ends`, ends.length, 1),
    ...ends
      .filter(({ type }) => type !== 'RunCompleted.v1')
      .map(({ type, data }) => `${stream}: ${type} ${JSON.stringify(data)}`),
    ...expected(`${stream}: steps of the model`, count('ModelStepFinished.v1'), TOOL_CALLS + 1),
    ...expected(`${stream}: steps of tools`, calls.length, TOOL_CALLS),
    ...repeated(calls).map((call) => `${stream}: two outcomes of ${call}`),
  ];
}

/** What the channel shows of a run. */
function problemsOfTree(stream: string, events: readonly LogEvent[], n: number): string[] {
  const posts = events.filter(({ type }) => type === 'InteractionPosted.v1');
  const inRole = (role: string) => posts.filter(({ data }) => data['contentRole'] === role);
  const completed = events.filter(({ type }) => type === 'InteractionCompleted.v2').map(({ data }) => textOf(data));
  return [
    ...expected(`${stream}: receipts`, events.filter(({ type }) => type === 'ReadReceiptRecorded.v1').length, 1),
    ...expected(`${stream}: reasoning`, inRole('agent_reasoning').length, TOOL_CALLS + 1),
    ...expected(`${stream}: tool calls`, inRole('tool_call').length, TOOL_CALLS),
    ...expected(`${stream}: results`, inRole('tool_call_result').length, TOOL_CALLS),
    ...expected(`${stream}: responses`, inRole('agent_response').length, 1),
    ...expected(`${stream}: errors`, inRole('internal_error').length, 0),
    ...expected(`${stream}: completions`, completed.length, 1),
    ...completed
      .filter((text) => text !== answerTo(n))
      .map((text) => `${stream}: question ${n} is answered by ${text}`),
  ];
}

function questionOf(run: readonly LogEvent[], channel: readonly LogEvent[]): number {
  const asked = channel.find(({ data }) => data['spanId'] === run[0]?.data['spanId']);
  return Number(/Question (\d+)/.exec(textOf(asked?.data ?? {}))?.[1]);
}

function textOf({ content }: LogEvent['data']): string {
  return Array.isArray(content) ? content.map((item: { text?: string }) => item.text ?? '').join('') : '';
}

function expected(what: string, found: number, wanted: number): string[] {
  return found === wanted ? [] : [`${what}: ${found} instead of ${wanted}`];
}

function repeated(values: readonly string[]): string[] {
  return [...Map.groupBy(values, (value) => value)].filter(([, group]) => group.length > 1).map(([value]) => value);
}
