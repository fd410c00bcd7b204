import { Command } from 'commander';
import { createUserBody, decideUpdate, updateUserBody, userEntity } from '#libs/features/users/index.ts';
import type { User, UserRejection } from '#libs/features/users/index.ts';
import { unreachable } from '#libs/kernel/decider.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { EntityResult, NotFound } from '#libs/platform/entity/index.ts';
import {
  allPages,
  checked,
  nameOf,
  operatorContext,
  printOne,
  printRows,
  rowOf,
  withSession,
} from './command-context.ts';
import type { CliParts } from './command-context.ts';
import { CliError } from './errors.ts';
import { ORGANIZATION_OPTION, organizationOf } from './organization-option.ts';
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
    .description('Change a user; what is not given stays as it is, "" clears')
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
  const body = checked(createUserBody, { display_name: name, email: options.email, image_url: options.imageUrl });
  await withSession(parts, async (session) => {
    const organizationId = await organizationOf(session, options);
    const { display_name: displayName, email = null, image_url: imageUrl = null } = body;
    const user = { id: newId(), displayName, email, imageUrl };
    const created = { type: 'UserCreated.v1', data: user } as const;
    const result = await session.features.users.create(operatorContext(organizationId), user.id, created);
    printUser(parts, options, user.id, result);
  });
}

async function list(parts: CliParts, options: OrganizationOptions): Promise<void> {
  await withSession(parts, async (session) => {
    const organizationId = await organizationOf(session, options);
    const rows = await allPages(async (page) => {
      const { documents, hasNext, last } = await session.features.users.page(organizationId, {}, page);
      return { items: documents.map(rowOf), hasNext, last };
    });
    printRows(parts, options, rows, COLUMNS);
  });
}

async function show(parts: CliParts, id: string, options: OrganizationOptions): Promise<void> {
  await withSession(parts, async (session) => {
    const organizationId = await organizationOf(session, options);
    const found = await session.features.users.document(organizationId, id);
    if (found === null) throw missing(id);
    printOne(parts, options, rowOf(found));
  });
}

async function update(parts: CliParts, id: string, options: ChangeOptions): Promise<void> {
  const body = checked(updateUserBody, {
    display_name: options.name,
    email: options.email === '' ? null : options.email,
    image_url: options.imageUrl === '' ? null : options.imageUrl,
  });
  await withSession(parts, async (session) => {
    const context = operatorContext(await organizationOf(session, options));
    const changes = { displayName: body.display_name, email: body.email, imageUrl: body.image_url };
    const result = await session.features.users.update(context, id, (user) => decideUpdate(user, changes));
    printUser(parts, options, id, result);
  });
}

async function deactivate(parts: CliParts, id: string, options: OrganizationOptions): Promise<void> {
  await withSession(parts, async (session) => {
    const context = operatorContext(await organizationOf(session, options));
    printUser(parts, options, id, await session.features.users.deactivate(context, id));
  });
}

function printUser(
  parts: CliParts,
  options: OrganizationOptions,
  id: string,
  result: EntityResult<User, UserRejection | NotFound>,
): void {
  if (result.ok) return printOne(parts, options, { ...userEntity.resource(result.entity) });
  switch (result.rejection.reason) {
    case 'not_found':
      throw missing(id);
    case 'deactivated':
      throw new CliError('the user is deactivated and cannot be changed any more');
    default:
      return unreachable(result.rejection);
  }
}

function missing(id: string): CliError {
  return new CliError(`the organization has no user ${id}; another organization is named with --organization`);
}
