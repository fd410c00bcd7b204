import { Command } from 'commander';
import { createKeyBody, keyResource, rotateKeyBody } from '#libs/features/keys/index.ts';
import type { KeyRejection, NewKeyResult } from '#libs/features/keys/index.ts';
import { systemClock } from '#libs/kernel/clock.ts';
import { unreachable } from '#libs/kernel/decider.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { allPages, checked, operatorContext, printOne, printRows, rowOf, withSession } from './command-context.ts';
import type { CliParts } from './command-context.ts';
import { CliError } from './errors.ts';
import { ORGANIZATION_OPTION, organizationOf } from './organization-option.ts';
import type { OrganizationOptions } from './organization-option.ts';
import type { Session } from './session.ts';

interface CreateOptions extends OrganizationOptions {
  readonly name: string;
  readonly scopes: string;
  readonly user?: string;
  readonly service?: string;
  readonly expires?: string;
  readonly quiet?: boolean;
}

interface RotateOptions extends OrganizationOptions {
  readonly grace?: string;
}

const COLUMNS = ['id', 'name', 'status', 'principal', 'scopes', 'last_four', 'expires_at', 'created_at'];

export function keysCommand(parts: CliParts): Command {
  const command = new Command('keys').description('Create, rotate and revoke API keys');

  command
    .command('create')
    .description('Create an API key. It is shown once and stored nowhere')
    .option('--name <name>', 'what the key is for', 'key of the command line')
    .option('--scopes <scopes>', 'read, write, impersonate, admin, platform, separated by commas', 'read,write')
    .option('--user <id>', "who acts with it; without it, the organization's owner")
    .option('--service <id>', 'a service acts with it, under this name')
    .option('--expires <time>', 'RFC 3339 time after which it stops working')
    .option(...ORGANIZATION_OPTION)
    .option('--json', 'print JSON')
    .option('--quiet', 'print the key and nothing else')
    .action((options: CreateOptions) => create(parts, options));

  command
    .command('list')
    .description('List the API keys of an organization, newest first')
    .option(...ORGANIZATION_OPTION)
    .option('--json', 'print JSON')
    .action((options: OrganizationOptions) => list(parts, options));

  command
    .command('rotate <id>')
    .description('Replace an API key by a new one, which is shown once')
    .option('--grace <seconds>', 'how long the old one works on; without it, until it is revoked')
    .option(...ORGANIZATION_OPTION)
    .option('--json', 'print JSON')
    .action((id: string, options: RotateOptions) => rotate(parts, id, options));

  command
    .command('revoke <id>')
    .description('Revoke an API key: it stops working at once, for good')
    .option(...ORGANIZATION_OPTION)
    .option('--json', 'print JSON')
    .action((id: string, options: OrganizationOptions) => revoke(parts, id, options));

  return command;
}

async function create(parts: CliParts, options: CreateOptions): Promise<void> {
  const scopes = options.scopes.split(',').map((scope) => scope.trim());
  const body = checked(createKeyBody, { name: options.name, scopes, expires_at: options.expires });
  const expiresAt = body.expires_at ?? null;
  if (expiresAt !== null && expiresAt <= systemClock.now()) throw new CliError(`${expiresAt} has passed already`);
  await withSession(parts, async (session) => {
    const organizationId = await organizationOf(session, options);
    const principal = await principalOf(session, organizationId, options);
    const description = { name: body.name, scopes: [...new Set(body.scopes)], principal, expiresAt };
    const context = operatorContext(organizationId);
    printNewKey(parts, options, await session.features.keys.commands.issue(context, description, 'operator'));
  });
}

async function principalOf(
  { features }: Session,
  organizationId: EntityId,
  { user, service }: CreateOptions,
): Promise<{ type: 'user' | 'service'; id: EntityId }> {
  if (service !== undefined) {
    if (user !== undefined) throw new CliError('a key belongs to a --user or to a --service, not to both');
    return checked(createKeyBody.shape.principal.unwrap(), { type: 'service', id: service });
  }
  const owner = (await features.organizations.find(organizationId, organizationId))?.ownerUserId;
  const id = user ?? owner;
  if (id === undefined || id === null)
    throw new CliError('the organization has no owner: name a --user or a --service');
  if ((await features.users.user(organizationId, id)) === null) {
    throw new CliError(`the organization has no active user ${id}`);
  }
  return { type: 'user', id };
}

async function list(parts: CliParts, options: OrganizationOptions): Promise<void> {
  await withSession(parts, async (session) => {
    const organizationId = await organizationOf(session, options);
    const rows = await allPages(async (page) => {
      const { documents, hasNext, last } = await session.features.keys.queries.list(organizationId, {}, page);
      return { items: documents.map(rowOf), hasNext, last };
    });
    const now = systemClock.now();
    const withStatus = rows.map((row) => ({ ...row, status: statusOf(row['revoked_at'], row['expires_at'], now) }));
    printRows(parts, options, withStatus, COLUMNS);
  });
}

function statusOf(revokedAt: unknown, expiresAt: unknown, now: string): string {
  if (revokedAt !== null) return 'revoked';
  return typeof expiresAt === 'string' && expiresAt <= now ? 'expired' : 'active';
}

async function rotate(parts: CliParts, id: string, options: RotateOptions): Promise<void> {
  const grace = options.grace === undefined ? undefined : Number(options.grace);
  const graceSeconds = checked(rotateKeyBody, { grace_seconds: grace })?.grace_seconds ?? undefined;
  await withSession(parts, async (session) => {
    const context = operatorContext(await organizationOf(session, options));
    const result = await session.features.keys.commands.rotate(context, id, { graceSeconds, grantor: 'operator' });
    printNewKey(parts, options, result, id);
  });
}

async function revoke(parts: CliParts, id: string, options: OrganizationOptions): Promise<void> {
  await withSession(parts, async (session) => {
    const context = operatorContext(await organizationOf(session, options));
    const result = await session.features.keys.commands.revoke(context, id, 'operator');
    if (!result.ok) throw refusal(result.rejection, id);
    printOne(parts, options, { ...keyResource(result.key) });
  });
}

function printNewKey(
  parts: CliParts,
  options: OrganizationOptions & { readonly quiet?: boolean },
  result: NewKeyResult,
  id = '',
): void {
  if (!result.ok) throw refusal(result.rejection, id);
  if (options.quiet === true) return parts.print(`${result.secret}\n`);
  printOne(parts, options, { ...keyResource(result.key), key: result.secret });
  if (options.json !== true) parts.print('\nThe key is shown only now: keep it.\n');
}

function refusal(rejection: KeyRejection, id: string): CliError {
  switch (rejection.reason) {
    case 'not_found':
      return new CliError(`the organization has no key ${id}; another organization is named with --organization`);
    case 'scope_not_held':
      return new CliError(`the scope ${rejection.scope} may not be granted`);
    case 'outlives_caller':
      return new CliError(`the key must end by ${rejection.latest}`);
    case 'user_not_active':
      return new CliError('the organization has no such user, or the user was deactivated');
    case 'not_active':
      return new CliError('the key has expired or was revoked');
    case 'rotated_already':
      return new CliError('the key has a successor that works: rotate that one, or revoke it first');
    case 'two_active':
      return new CliError('the key and the one before it both work: revoke the older one first');
    case 'withdrawn':
      return new CliError('another rotation of the same key came first');
    default:
      return unreachable(rejection);
  }
}
