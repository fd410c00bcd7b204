import { Command } from 'commander';
import {
  createOrganizationBody,
  decideUpdate,
  organizationResource,
  updateOrganizationBody,
} from '#libs/features/organizations/index.ts';
import type { OrganizationResource } from '#libs/features/organizations/index.ts';
import { newId } from '#libs/kernel/ids.ts';
import { allPages, checked, nameOf, operatorContext, printOne, printRows, withSession } from './command-context.ts';
import type { CliParts, OutputOptions } from './command-context.ts';
import { CliError } from './errors.ts';
import type { Row } from './output.ts';
import type { Session } from './session.ts';

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
    .description('Change an organization; what is not given stays as it is')
    .option('--name <name>')
    .option('--application <application>', `${APPLICATION}; "" for none`)
    .option('--owner <user>', 'id of a user of the organization; "" for none')
    .option('--json', 'print JSON')
    .action((id: string, options: ChangeOptions) => update(parts, id, options));

  return command;
}

async function create(parts: CliParts, name: string, options: ChangeOptions): Promise<void> {
  const body = checked(createOrganizationBody, { name, application: options.application });
  await withSession(parts, async (session) => {
    const id = newId();
    const data = { id, name: body.name, application: body.application ?? null, ownerUserId: null };
    const created = { type: 'OrganizationCreated.v1', data } as const;
    const result = await session.features.organizations.create(operatorContext(id), id, created);
    if (!result.ok) throw missing(id);
    printOne(parts, options, await rowOf(session, organizationResource(result.entity)));
  });
}

async function list(parts: CliParts, options: OutputOptions): Promise<void> {
  await withSession(parts, async (session) => {
    const found = await allPages(async (page) => {
      const { documents, hasNext, last } = await session.features.organizations.page('all', {}, page);
      return { items: documents.map(({ json }) => JSON.parse(json.toString()) as OrganizationResource), hasNext, last };
    });
    const rows = await Promise.all(found.map((organization) => rowOf(session, organization)));
    printRows(parts, options, rows, COLUMNS);
  });
}

async function show(parts: CliParts, id: string, options: OutputOptions): Promise<void> {
  await withSession(parts, async (session) => {
    const found = await session.features.organizations.find(id, id);
    if (found === null) throw missing(id);
    printOne(parts, options, await rowOf(session, organizationResource(found)));
  });
}

async function update(parts: CliParts, id: string, options: ChangeOptions): Promise<void> {
  const body = checked(updateOrganizationBody, {
    name: options.name,
    application: noneIfEmpty(options.application),
    owner_id: noneIfEmpty(options.owner),
  });
  const { name, application, owner_id: ownerUserId } = body;
  await withSession(parts, async (session) => {
    if (typeof ownerUserId === 'string' && (await session.features.users.user(id, ownerUserId)) === null) {
      throw new CliError(`the organization has no active user ${ownerUserId}`);
    }
    const changes = { name, application, ownerUserId };
    const result = await session.features.organizations.update(operatorContext(id), id, (one) =>
      decideUpdate(one, changes),
    );
    if (!result.ok) throw missing(id);
    printOne(parts, options, await rowOf(session, organizationResource(result.entity)));
  });
}

async function rowOf(session: Session, organization: OrganizationResource): Promise<Row> {
  const { id, owner_id: ownerId } = organization;
  const owner = ownerId === null ? null : await session.features.users.summary(id, ownerId);
  return { ...organization, owner: owner?.display_name ?? null };
}

/** An option that is given empty clears the field, one that is absent leaves it. */
function noneIfEmpty(option: string | undefined): string | null | undefined {
  return option === '' ? null : option;
}

function missing(id: string): CliError {
  return new CliError(`there is no organization ${id}`);
}
