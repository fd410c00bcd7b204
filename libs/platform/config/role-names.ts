/** Roles that `npx parley <role>` runs, each in a process of its own. In a file that imports nothing: see `services/cli/main.ts`. */
export const ROLE_NAMES = ['gateway', 'realtime', 'projector', 'relay'] as const;

export type RoleName = (typeof ROLE_NAMES)[number];
