import type { EntityId } from '#libs/kernel/ids.ts';
import { FIRST_ORGANIZATION } from '#services/first-organization.ts';
import { CliError } from './errors.ts';
import type { OutputOptions } from './command-context.ts';
import type { Session } from './session.ts';

/** Commands that act within one organization take the option. */
export interface OrganizationOptions extends OutputOptions {
  readonly organization?: string;
}

export const ORGANIZATION_OPTION = [
  '-o, --organization <id>',
  'organization; default: the first one, or that of PARLEY_KEY',
] as const;

export function organizationQuery({ organization }: OrganizationOptions): { organization_id?: EntityId } {
  return organization === undefined ? {} : { organization_id: organization };
}

export function noOrganization({ organization }: OrganizationOptions): string {
  return organization === undefined
    ? 'there is no organization yet; npm start or a restarted gateway creates the first one'
    : `there is no organization ${organization}`;
}

/** @throws CliError if there is no such organization */
export async function organizationOf({ features }: Session, options: OrganizationOptions): Promise<EntityId> {
  const id = options.organization ?? FIRST_ORGANIZATION;
  if ((await features.organizations.find(id, id)) !== null) return id;
  throw new CliError(noOrganization(options));
}
