import { Command } from 'commander';

import type { components } from '#libs/client/src/index.ts';

import { printList, printReply } from './replies.ts';
import { nameOf, type CliParts, type OutputOptions } from './command-context.ts';
import type { Row } from './output.ts';

type Organization = components['schemas']['Organization'];
type Application = Organization['application'];

interface ChangeOptions extends OutputOptions {
  readonly name?: string;
  readonly application?: string;
  readonly owner?: string;
}

const COLUMNS = ['id', 'name', 'application', 'owner', 'created_at'];
const APPLICATION = 'app_main, app_two, app_three, app_four, health or app_five';

export function organizationsCommand(parts: CliParts): Command {
  const command = new Command('organizations').description('Create and change organizations, the tenants');

  command
    .command('create [name]')
    .description('Create an organization')
    .option('--name <name>', 'the name, if it is not given as the argument')
    .option('--application <application>', APPLICATION)
    .option('--json', 'print JSON')
    .action((name: string | undefined, options: ChangeOptions) =>
      create(parts, nameOf(name, options.name, '--name'), options),
    );

  command
    .command('list')
    .description('List all organizations, newest first')
    .option('--json', 'print JSON')
    .action((options: OutputOptions) =>
      printList(parts, options, { ...printed('no such route'), columns: COLUMNS }, (rest, query) =>
        rest.GET('/api/v1/organizations', { params: { query } }),
      ),
    );

  command
    .command('show <id>')
    .description('Show an organization')
    .option('--json', 'print JSON')
    .action((id: string, options: OutputOptions) =>
      printReply(parts, options, printed(`there is no organization ${id}`), (rest) =>
        rest.GET('/api/v1/organizations/{id}', { params: { path: { id } } }),
      ),
    );

  command
    .command('update <id>')
    .description('Change an organization; options that are absent leave their field unchanged')
    .option('--name <name>')
    .option('--application <application>', `${APPLICATION}; "" for none`)
    .option('--owner <user>', 'id of a user of the organization; "" for none')
    .option('--json', 'print JSON')
    .action((id: string, options: ChangeOptions) => update(parts, id, options));

  return command;
}

function create(parts: CliParts, name: string, { application, ...options }: ChangeOptions): Promise<void> {
  const body = { name, ...(application !== undefined && { application: application as Application }) };
  return printReply(parts, options, printed('no such route'), (rest) => rest.POST('/api/v1/organizations', { body }));
}

function update(parts: CliParts, id: string, options: ChangeOptions): Promise<void> {
  const { name, application, owner } = options;
  const body = {
    ...(name !== undefined && { name }),
    ...(application !== undefined && { application: (application || null) as Application }),
    ...(owner !== undefined && { owner_id: owner || null }),
  };
  return printReply(parts, options, printed(`there is no organization ${id}`), (rest) =>
    rest.PATCH('/api/v1/organizations/{id}', { params: { path: { id } }, body }),
  );
}

/** The commands act on any organization, so the first one need not exist. */
function printed(missing: string) {
  const rowOf = (one: Organization): Row => ({ ...one, owner: one.owner?.display_name ?? null });
  return { missing, rowOf, needsOrganization: false };
}
