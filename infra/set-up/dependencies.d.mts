interface Lock {
  readonly packages?: Readonly<Record<string, { version?: string; integrity?: string; optional?: boolean }>>;
}

export function ensureDependencies(root: string): Promise<string>;
export function installedIsLocked(lock: Lock | undefined, installed: Lock | undefined): boolean;
