import { Command } from 'commander';

import type { components } from '#libs/client/src/index.ts';

import { allItems, dataOf, withApi } from './api.ts';
import { nameOf, printOne, printRows } from './command-context.ts';
import type { CliParts, OutputOptions } from './command-context.ts';
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
    .action((options: OutputOptions) => list(parts, options));

  command
    .command('show <id>')
    .description('Show an organization')
    .option('--json', 'print JSON')
    .action((id: string, options: OutputOptions) => show(parts, id, options));

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

/** The commands act on any organization, so the first one need not exist. */
const ANY = { needsOrganization: false };

async function create(parts: CliParts, name: string, { application, ...options }: ChangeOptions): Promise<void> {
  const body = { name, ...(application !== undefined && { application: application as Application }) };
  await withApi(
    parts,
    async ({ rest }) => {
      printOne(parts, options, rowOf(await dataOf(rest.POST('/api/v1/organizations', { body }), 'no such route')));
    },
    ANY,
  );
}

async function list(parts: CliParts, options: OutputOptions): Promise<void> {
  await withApi(
    parts,
    async ({ rest }) => {
      const found = await allItems((query) =>
        dataOf(rest.GET('/api/v1/organizations', { params: { query } }), 'no such route'),
      );
      printRows(parts, options, found.map(rowOf), COLUMNS);
    },
    ANY,
  );
}

async function show(parts: CliParts, id: string, options: OutputOptions): Promise<void> {
  await withApi(
    parts,
    async ({ rest }) => {
      const call = rest.GET('/api/v1/organizations/{id}', { params: { path: { id } } });
      printOne(parts, options, rowOf(await dataOf(call, missing(id))));
    },
    ANY,
  );
}

async function update(parts: CliParts, id: string, options: ChangeOptions): Promise<void> {
  const { name, application, owner } = options;
  const body = {
    ...(name !== undefined && { name }),
    ...(application !== undefined && { application: (application || null) as Application }),
    ...(owner !== undefined && { owner_id: owner || null }),
  };
  await withApi(
    parts,
    async ({ rest }) => {
      const call = rest.PATCH('/api/v1/organizations/{id}', { params: { path: { id } }, body });
      printOne(parts, options, rowOf(await dataOf(call, missing(id))));
    },
    ANY,
  );
}

function rowOf(organization: Organization): Row {
  return { ...organization, owner: organization.owner?.display_name ?? null };
}

function missing(id: string): string {
  return `there is no organization ${id}`;
}
