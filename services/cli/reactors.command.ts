import { Command } from 'commander';
import type { ConsumerGroupStatus } from '#libs/platform/eventstore/index.ts';
import { GROUP_PREFIX, groupNameOf, reactorNameOf } from '#libs/platform/reactors/index.ts';
import { printOne, printRows, withSession, type CliParts, type OutputOptions } from './command-context.ts';
import { CliError } from './errors.ts';
import type { Session } from './session.ts';

const MAX_PARKED = 100;

export function reactorsCommand(parts: CliParts): Command {
  const reactors = new Command('reactors').description('List reactors, and retry the events that they have parked');
  reactors
    .command('list', { isDefault: true })
    .description('List the consumer groups of reactors, with their workers, lag and events')
    .option('--json', 'print JSON')
    .action((options: OutputOptions) => list(parts, options));
  reactors
    .command('parked <name>')
    .description(`Show the oldest parked events of a reactor, up to ${MAX_PARKED}, with the reason`)
    .option('--json', 'print JSON')
    .action((name: string, options: OutputOptions) => parked(parts, name, options));
  reactors
    .command('retry <name>')
    .description('Let the workers handle all parked events of a reactor again')
    .option('--json', 'print JSON')
    .action((name: string, options: OutputOptions) => retry(parts, name, options));
  return reactors;
}

async function list(parts: CliParts, options: OutputOptions): Promise<void> {
  await withGroups(parts, async ({ platform, features }) => {
    const groups = await platform.groups.list(GROUP_PREFIX);
    const declared = new Set(features.reactors.map((reactor) => groupNameOf(reactor)));
    const rows = groups.map(({ name, members, inFlight, waiting, parked, lag }) => ({
      name: reactorNameOf(name),
      group: name,
      current: declared.has(name),
      workers: members,
      in_flight: inFlight,
      waiting,
      parked,
      lag,
    }));
    printRows(parts, options, rows, ['name', 'workers', 'in_flight', 'waiting', 'parked', 'lag', 'current', 'group']);
  });
}

async function parked(parts: CliParts, name: string, options: OutputOptions): Promise<void> {
  await withGroups(parts, async (session) => {
    const found = await groupsOf(session, name);
    const events = await Promise.all(found.map((group) => session.platform.groups.parked(group.name, MAX_PARKED)));
    const rows = events.flat().map(({ stream, revision, type, parkedAt, reason }) => ({
      stream,
      revision,
      type,
      parked_at: parkedAt,
      reason,
    }));
    printRows(parts, options, rows, ['stream', 'revision', 'type', 'parked_at', 'reason']);
  });
}

async function retry(parts: CliParts, name: string, options: OutputOptions): Promise<void> {
  await withGroups(parts, async (session) => {
    const found = await groupsOf(session, name);
    for (const group of found) await session.platform.groups.retryParked(group.name);
    printOne(parts, options, { name, retried: found.reduce((sum, group) => sum + group.parked, 0) });
  });
}

/** @throws CliError for a reactor that has never run */
async function groupsOf({ platform }: Session, name: string): Promise<readonly ConsumerGroupStatus[]> {
  const all = await platform.groups.list(GROUP_PREFIX);
  const found = all.filter((group) => reactorNameOf(group.name) === name);
  if (found.length > 0) return found;
  const names = [...new Set(all.map((group) => reactorNameOf(group.name)))];
  throw new CliError(
    `there is no reactor ${name}; ${names.length === 0 ? 'none has run' : `there are: ${names.join(', ')}`}`,
  );
}

/** Consumer groups are in the event store, so no read model has to be up to date. */
function withGroups(parts: CliParts, work: (session: Session) => Promise<void>): Promise<void> {
  return withSession(parts, work, { catchUp: false });
}
