import { Command } from 'commander';

import {
  ApiError,
  type ChannelSubscription,
  SubscriptionError,
  type SubscriptionState,
} from '#libs/client/src/index.ts';

import { interruptible, ORGANIZATION_OPTION, type CliParts, type OrganizationOptions } from './command-context.ts';
import { CliError, isReaderGone } from './errors.ts';
import { type Api, withApi } from './api.ts';
import { coloured, plain, TailLines } from './tail.lines.ts';

interface TailOptions extends OrganizationOptions {
  readonly url?: string;
  readonly after?: string;
}

export function tailCommand(parts: CliParts): Command {
  return new Command('tail')
    .description('Print the events of a channel as they happen. Ctrl-C ends it and prints how to resume')
    .argument('<channel id>')
    .option('--after <sequence>', 'start after this event; 0: from the beginning. Default: only new events')
    .option('--json', 'print each event as one line of JSON')
    .option('--url <url>', 'URL of Parley; default: PARLEY_URL, else the Parley that runs on DATA_DIR')
    .option(...ORGANIZATION_OPTION)
    .addHelpText('after', '\nUses the API key of PARLEY_KEY; without it, creates a key and revokes it at the end.')
    .action((id: string, options: TailOptions) => run(parts, id, options));
}

async function run(parts: CliParts, channelId: string, options: TailOptions): Promise<void> {
  const after = sequenceOf(options.after);
  await interruptible(parts, (signal) =>
    withApi(parts, (api) => follow({ parts, options, channelId, after, api, signal }), {
      server: { ...options, command: 'tail', scopes: ['read'], otherwise: 'refuse' },
    }),
  );
}

function sequenceOf(after: string | undefined): number | undefined {
  if (after === undefined) return undefined;
  const sequence = Number(after);
  if (/^\d+$/.test(after) && Number.isSafeInteger(sequence)) return sequence;
  throw new CliError(`--after is a sequence, a whole number from 0; it is "${after}"`);
}

interface Tail {
  readonly parts: CliParts;
  readonly options: TailOptions;
  readonly channelId: string;
  readonly after: number | undefined;
  readonly api: Api;
  readonly signal: AbortSignal;
}

async function follow({ parts, options, channelId, after, api, signal }: Tail): Promise<void> {
  const screen = options.json === true ? undefined : parts.screen;
  const lines = new TailLines(parts.screen === undefined ? plain : coloured);
  const subscription = api.client.channel(channelId).subscribe({ after, signal });
  const status = statusLine(screen);
  let learned: Promise<void> | undefined;
  subscription.on('state', (state) => {
    if (state.state === 'replaying' && options.json !== true) learned = learnNames(api, channelId, lines);
    tellState(parts, state, api.url);
  });
  if (screen !== undefined) {
    subscription.on('draft', ({ interactionId, text }) =>
      status.show(lines.draft(interactionId, text, screen.columns)),
    );
  }
  // The subscription's cursor would include events whose lines the reader cannot get.
  let written = after ?? null;
  let isClosed = false;
  try {
    for await (const event of subscription) {
      await learned;
      status.clear();
      written ??= event.seq - 1;
      isClosed = !(await isTaken(parts, `${options.json === true ? JSON.stringify(event) : lines.event(event)}\n`));
      if (isClosed) break;
      written = event.seq;
    }
  } catch (error) {
    if (!ended(parts, error, subscription)) throw refused(error, channelId, written);
  } finally {
    status.clear();
    subscription.close();
  }
  if (signal.aborted || isClosed)
    parts.tell(`stopped; resume with: ${resumption(channelId, written ?? subscription.cursor)}`);
}

const NAMES_WITHIN_MS = 5_000;

/** Names of the participants. Without them, lines show ids: the events matter more. */
async function learnNames({ rest }: Api, id: string, lines: TailLines): Promise<void> {
  const params = { path: { id } };
  const signal = AbortSignal.timeout(NAMES_WITHIN_MS);
  const answer = await rest.GET('/api/v1/channels/{id}', { params, signal }).catch(() => undefined);
  const { participants } = Object(answer?.data) as { readonly participants?: unknown };
  // A proxy may have answered.
  if (Array.isArray(participants)) lines.learn(participants);
}

/** False if the reader, such as `head`, has closed the pipe. */
async function isTaken({ write }: CliParts, text: string): Promise<boolean> {
  try {
    await write(text);
    return true;
  } catch (error) {
    if (isReaderGone(error)) return false;
    throw error;
  }
}

/** The end of an archived channel is not an error. */
function ended({ tell }: CliParts, error: unknown, { cursor }: ChannelSubscription): boolean {
  if (!(error instanceof SubscriptionError) || error.code !== 'channel_gone') return false;
  tell(`the channel is archived; its last event is ${cursor ?? 0}`);
  return true;
}

function refused(error: unknown, channelId: string, written: number | null): unknown {
  if (!(error instanceof SubscriptionError)) return error;
  // From the cursor, it would end the same way.
  if (error.code === 'events_gone') return new CliError(error.message);
  if (error.cause instanceof ApiError && written === null) {
    const isMissing = error.cause.status === 404;
    return new CliError(isMissing ? `there is no channel ${channelId}` : `Parley refuses: ${error.cause.message}`);
  }
  return new CliError(`${error.message}\nresume with: ${resumption(channelId, written)}`);
}

function resumption(channelId: string, cursor: number | null): string {
  return `npx parley tail ${channelId}${cursor === null ? '' : ` --after ${cursor}`}`;
}

function tellState({ tell }: CliParts, state: SubscriptionState, url: string): void {
  if (state.state !== 'waiting') return;
  tell(`${url}: ${state.reason}; trying again in ${(state.retryInMs / 1_000).toFixed(1)} s`);
}

/** A status line at the bottom of a terminal. */
function statusLine(screen: NodeJS.WriteStream | undefined) {
  let isShown = false;
  return {
    show(text: string): void {
      screen?.write(`\r\u{1b}[K${text}`);
      isShown = true;
    },
    clear(): void {
      if (isShown) screen?.write('\r\u{1b}[K');
      isShown = false;
    },
  };
}
