import { Command } from 'commander';

import type { components } from '#libs/client/src/index.ts';
import { systemClock } from '#libs/kernel/clock.ts';

import { type Api, dataOf, withApi } from './api.ts';
import {
  type CliParts,
  inOrganization,
  ORGANIZATION_OPTION,
  type OrganizationOptions,
  organizationQuery,
  printOne,
} from './command-context.ts';
import { CliError, noOrganization } from './errors.ts';
import type { Row } from './output.ts';
import { printList, printReply } from './replies.ts';

type ApiKey = components['schemas']['ApiKey'];
type NewKey = components['schemas']['CreatedApiKey'];
type Principal = NewKey['principal'];

interface CreateOptions extends OrganizationOptions {
  readonly name: string;
  readonly scopes: string;
  readonly user?: string;
  readonly service?: string;
  readonly access?: string;
  readonly expires?: string;
  readonly quiet?: boolean;
}

interface RotateOptions extends OrganizationOptions {
  readonly grace?: string;
}

const COLUMNS = ['id', 'name', 'status', 'principal', 'scopes', 'access', 'last_four', 'expires_at', 'created_at'];

export function keysCommand(parts: CliParts): Command {
  const command = new Command('keys').description('Create, rotate and revoke API keys');

  command
    .command('create')
    .description('Create an API key. It is shown once and stored nowhere')
    .option('--name <name>', 'what the key is for', 'key of the command line')
    .option('--scopes <scopes>', 'read, write, impersonate, agent, admin, platform, separated by commas', 'read,write')
    .option('--user <id>', "user that the key belongs to; default: the organization's owner")
    .option('--service <id>', 'service that the key belongs to, instead of a user')
    .option(
      '--access <access>',
      'participation (default for users): only channels of the user; or organization (default for services)',
    )
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
    .option('--grace <seconds>', 'how long the old key keeps working; default: until it is revoked')
    .option(...ORGANIZATION_OPTION)
    .option('--json', 'print JSON')
    .action((id: string, options: RotateOptions) => rotate(parts, id, options));

  command
    .command('revoke <id>')
    .description('Revoke an API key: it stops working at once, for good')
    .option(...ORGANIZATION_OPTION)
    .option('--json', 'print JSON')
    .action((id: string, options: OrganizationOptions) =>
      printReply(parts, options, { missing: missing(id) }, (rest) =>
        rest.POST('/api/v1/keys/{id}/revoke', inOrganization(id, options)),
      ),
    );

  return command;
}

async function create(parts: CliParts, options: CreateOptions): Promise<void> {
  const { name, access, expires, organization } = options;
  const scopes = options.scopes.split(',').map((scope) => scope.trim());
  await withApi(parts, async (api) => {
    const principal = await principalOf(api, options);
    const body = {
      name,
      // The API names the scopes, and the access, that it does not know.
      scopes: scopes as NewKey['scopes'],
      ...(access !== undefined && { access: access as NewKey['access'] }),
      ...(expires !== undefined && { expires_at: expires }),
      ...(principal !== undefined && { principal }),
      ...(organization !== undefined && { organization_id: organization }),
    };
    printNewKey(parts, options, await dataOf(api.rest.POST('/api/v1/keys', { body }), noOrganization(options)));
  });
}

/** Undefined to let the API decide: then the new key belongs to the owner of the caller's key. */
async function principalOf({ rest, defaultOrganization }: Api, options: CreateOptions): Promise<Principal | undefined> {
  const { user, service, organization = defaultOrganization } = options;
  if (user !== undefined && service !== undefined) {
    throw new CliError('a key belongs to a --user or to a --service, not to both');
  }
  if (service !== undefined) return { type: 'service', id: service };
  if (user !== undefined) return { type: 'user', id: user };
  if (organization === undefined) return undefined;
  const call = rest.GET('/api/v1/organizations/{id}', { params: { path: { id: organization } } });
  const { owner_id: owner } = await dataOf(call, noOrganization(options));
  if (owner === null) throw new CliError('the organization has no owner: name a --user or a --service');
  return { type: 'user', id: owner };
}

function list(parts: CliParts, options: OrganizationOptions): Promise<void> {
  const now = systemClock.now();
  const rowOf = (key: ApiKey): Row => ({ ...key, status: statusOf(key, now) });
  return printList(parts, options, { missing: noOrganization(options), rowOf, columns: COLUMNS }, (rest, page) =>
    rest.GET('/api/v1/keys', { params: { query: { ...page, ...organizationQuery(options) } } }),
  );
}

function statusOf(key: ApiKey, now: string): string {
  if (key.revoked_at !== null) return 'revoked';
  return key.expires_at !== null && key.expires_at <= now ? 'expired' : 'active';
}

async function rotate(parts: CliParts, id: string, options: RotateOptions): Promise<void> {
  const { grace } = options;
  const request = { ...inOrganization(id, options), body: grace === undefined ? {} : { grace_seconds: Number(grace) } };
  await withApi(parts, async ({ rest }) => {
    printNewKey(parts, options, await dataOf(rest.POST('/api/v1/keys/{id}/rotate', request), missing(id)));
  });
}

function printNewKey(parts: CliParts, options: OrganizationOptions & { quiet?: boolean }, key: NewKey): void {
  if (options.quiet === true) return parts.print(`${key.key}\n`);
  printOne(parts, options, key);
  if (options.json !== true) parts.print('\nThe key is shown only now: keep it.\n');
}

function missing(id: string): string {
  return `the organization has no key ${id}; name another organization with --organization`;
}
