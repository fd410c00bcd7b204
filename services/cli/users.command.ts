import { Command } from 'commander';

import { allItems, dataOf, withApi } from './api.ts';
import { nameOf, printOne, printRows } from './command-context.ts';
import type { CliParts } from './command-context.ts';
import { noOrganization, ORGANIZATION_OPTION, organizationQuery } from './organization-option.ts';
import type { OrganizationOptions } from './organization-option.ts';

interface ChangeOptions extends OrganizationOptions {
  readonly name?: string;
  readonly displayName?: string;
  readonly email?: string;
  readonly imageUrl?: string;
}

const COLUMNS = ['id', 'display_name', 'email', 'is_active', 'created_at'];

export function usersCommand(parts: CliParts): Command {
  const command = new Command('users').description('Create, change and deactivate the users of an organization');

  command
    .command('create [name]')
    .description('Create a user')
    .option('--display-name <name>', 'the name, if it is not given as the argument')
    .option('--email <address>')
    .option('--image-url <url>')
    .option(...ORGANIZATION_OPTION)
    .option('--json', 'print JSON')
    .action((name: string | undefined, options: ChangeOptions) =>
      create(parts, nameOf(name, options.displayName, '--display-name'), options),
    );

  command
    .command('list')
    .description('List the users of an organization, newest first')
    .option(...ORGANIZATION_OPTION)
    .option('--json', 'print JSON')
    .action((options: OrganizationOptions) => list(parts, options));

  command
    .command('show <id>')
    .description('Show a user')
    .option(...ORGANIZATION_OPTION)
    .option('--json', 'print JSON')
    .action((id: string, options: OrganizationOptions) => show(parts, id, options));

  command
    .command('update <id>')
    .description('Change a user; options that are absent leave their field unchanged, "" clears it')
    .option('--name <name>')
    .option('--email <address>')
    .option('--image-url <url>')
    .option(...ORGANIZATION_OPTION)
    .option('--json', 'print JSON')
    .action((id: string, options: ChangeOptions) => update(parts, id, options));

  command
    .command('deactivate <id>')
    .description('Deactivate a user for good; its API keys stop working at once')
    .option(...ORGANIZATION_OPTION)
    .option('--json', 'print JSON')
    .action((id: string, options: OrganizationOptions) => deactivate(parts, id, options));

  return command;
}

async function create(parts: CliParts, name: string, options: ChangeOptions): Promise<void> {
  const { email, imageUrl } = options;
  const body = {
    display_name: name,
    ...(email !== undefined && { email }),
    ...(imageUrl !== undefined && { image_url: imageUrl }),
    ...organizationQuery(options),
  };
  await withApi(parts, async ({ rest }) => {
    printOne(parts, options, await dataOf(rest.POST('/api/v1/users', { body }), noOrganization(options)));
  });
}

async function list(parts: CliParts, options: OrganizationOptions): Promise<void> {
  await withApi(parts, async ({ rest }) => {
    const users = await allItems((page) => {
      const query = { ...page, ...organizationQuery(options) };
      return dataOf(rest.GET('/api/v1/users', { params: { query } }), noOrganization(options));
    });
    printRows(parts, options, users, COLUMNS);
  });
}

async function show(parts: CliParts, id: string, options: OrganizationOptions): Promise<void> {
  await withApi(parts, async ({ rest }) => {
    const call = rest.GET('/api/v1/users/{id}', { params: { path: { id }, query: organizationQuery(options) } });
    printOne(parts, options, await dataOf(call, missing(id)));
  });
}

async function update(parts: CliParts, id: string, options: ChangeOptions): Promise<void> {
  const { name, email, imageUrl } = options;
  const body = {
    ...(name !== undefined && { display_name: name }),
    ...(email !== undefined && { email: email || null }),
    ...(imageUrl !== undefined && { image_url: imageUrl || null }),
  };
  await withApi(parts, async ({ rest }) => {
    const params = { path: { id }, query: organizationQuery(options) };
    printOne(parts, options, await dataOf(rest.PATCH('/api/v1/users/{id}', { params, body }), missing(id)));
  });
}

async function deactivate(parts: CliParts, id: string, options: OrganizationOptions): Promise<void> {
  await withApi(parts, async ({ rest }) => {
    const params = { path: { id }, query: organizationQuery(options) };
    printOne(parts, options, await dataOf(rest.DELETE('/api/v1/users/{id}', { params }), missing(id)));
  });
}

function missing(id: string): string {
  return `the organization has no user ${id}; name another organization with --organization`;
}
