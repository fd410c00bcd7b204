import { FIRST_ORGANIZATION } from '#libs/features/keys/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { CliError } from './errors.ts';
import type { OutputOptions } from './command-context.ts';
import type { Session } from './session.ts';

/** Commands on things of one organization take it; without it, they mean the first one. */
export interface OrganizationOptions extends OutputOptions {
  readonly organization?: string;
}

export const ORGANIZATION_OPTION = ['-o, --organization <id>', 'organization; without it, the first one'] as const;

/** @throws CliError if there is no such organization */
export async function organizationOf({ features }: Session, { organization }: OrganizationOptions): Promise<EntityId> {
  const id = organization ?? FIRST_ORGANIZATION;
  if ((await features.organizations.find(id, id)) !== null) return id;
  throw new CliError(
    organization === undefined
      ? 'there is no organization yet; npm start or a restarted gateway creates the first one'
      : `there is no organization ${id}`,
  );
}
