import { Command } from 'commander';
import { ACCEPT_OPTION } from '#services/log-check.ts';
import { rebuild } from '#services/projector/rebuild.ts';
import type { ReadModelName } from '#libs/platform/readmodel/index.ts';
import { interruptible, printOne, withSession, type CliParts, type OutputOptions } from './command-context.ts';
import { CliError } from './errors.ts';
import { progressBar, rateSince } from './output.ts';
import type { Session } from './session.ts';

export function rebuildCommand(parts: CliParts): Command {
  return new Command('rebuild')
    .description('Delete the read models and fold the log again; safe beside a running Parley')
    .option('--only <names...>', 'the read models of these only, such as users; all others keep answering')
    .option(ACCEPT_OPTION, 'also if the log lacks events that the read models hold; these are lost')
    .option('--json', 'print JSON')
    .action((options: RebuildOptions) => run(parts, options));
}

const FORMAT = 'rebuild  {bar}  {percentage}%  {events} events  {rate}/s  {problem}';

interface RebuildOptions extends OutputOptions {
  readonly acceptLostEvents?: boolean;
  readonly only?: readonly string[];
}

async function run(parts: CliParts, options: RebuildOptions): Promise<void> {
  if (options.only !== undefined && options.acceptLostEvents === true) {
    throw new CliError(`${ACCEPT_OPTION} needs a rebuild of all read models: the others would keep the lost events`);
  }
  const work = async ({ platform, features }: Session, signal: AbortSignal): Promise<void> => {
    const startedAt = performance.now();
    const bar = progressBar(parts.terminal, FORMAT, { events: 0, rate: 0, problem: '' });
    const only = options.only && categoriesOf(options.only, features.projector.readModels);
    const events = await rebuild(
      { feed: platform.feed, state: features.state, projector: features.projector },
      {
        only,
        signal,
        onProgress: ({ events, fraction, problem }) =>
          bar.update(fraction, { events, rate: rateSince(startedAt, events), problem: problem ?? '' }),
      },
    ).finally(() => bar.stop());
    const seconds = (performance.now() - startedAt) / 1_000;
    const rate = Math.round(events / seconds);
    printOne(parts, options, { events, seconds: Number(seconds.toFixed(3)), events_per_second: rate });
  };
  const sessionOptions = { acceptLostEvents: options.acceptLostEvents === true };
  await interruptible(
    parts,
    (signal) => withSession(parts, (session) => work(session, signal), sessionOptions),
    'interrupted; the next projector finishes the rebuild',
  );
}

/** The categories with these names, in the singular or the plural: `user` or `users`. */
function categoriesOf(names: readonly string[], known: readonly ReadModelName[]): string[] {
  return names.map((name) => {
    const found = known.find(({ category }) => name === category || name === `${category}s`);
    if (found !== undefined) return found.category;
    const all = known.map(({ category }) => `${category}s`).join(', ');
    throw new CliError(`there are no read models of ${JSON.stringify(name)}; choose from ${all}`);
  });
}
