import { Command } from 'commander';

import { printList, printReply } from './replies.ts';
import {
  type CliParts,
  inOrganization,
  nameOf,
  ORGANIZATION_OPTION,
  type OrganizationOptions,
  organizationQuery,
} from './command-context.ts';
import { noOrganization } from './errors.ts';

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
    .action((options: OrganizationOptions) =>
      printList(parts, options, { missing: noOrganization(options), columns: COLUMNS }, (rest, page) =>
        rest.GET('/api/v1/users', { params: { query: { ...page, ...organizationQuery(options) } } }),
      ),
    );

  command
    .command('show <id>')
    .description('Show a user')
    .option(...ORGANIZATION_OPTION)
    .option('--json', 'print JSON')
    .action((id: string, options: OrganizationOptions) =>
      printReply(parts, options, missing(id), (rest) => rest.GET('/api/v1/users/{id}', inOrganization(id, options))),
    );

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
    .action((id: string, options: OrganizationOptions) =>
      printReply(parts, options, missing(id), (rest) => rest.DELETE('/api/v1/users/{id}', inOrganization(id, options))),
    );

  return command;
}

function create(parts: CliParts, name: string, options: ChangeOptions): Promise<void> {
  const { email, imageUrl } = options;
  const body = {
    display_name: name,
    ...(email !== undefined && { email }),
    ...(imageUrl !== undefined && { image_url: imageUrl }),
    ...organizationQuery(options),
  };
  const missing = noOrganization(options);
  return printReply(parts, options, { missing }, (rest) => rest.POST('/api/v1/users', { body }));
}

function update(parts: CliParts, id: string, options: ChangeOptions): Promise<void> {
  const { name, email, imageUrl } = options;
  const body = {
    ...(name !== undefined && { display_name: name }),
    ...(email !== undefined && { email: email || null }),
    ...(imageUrl !== undefined && { image_url: imageUrl || null }),
  };
  const request = { ...inOrganization(id, options), body };
  return printReply(parts, options, missing(id), (rest) => rest.PATCH('/api/v1/users/{id}', request));
}

function missing(id: string): { readonly missing: string } {
  return { missing: `the organization has no user ${id}; name another organization with --organization` };
}
