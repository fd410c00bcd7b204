interface Package {
  readonly version?: string;
  readonly integrity?: string;
  readonly optional?: boolean;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
}

interface Lock {
  readonly packages?: Readonly<Record<string, Package>>;
}

interface Needs {
  /** Also the packages of tests, checks and benchmarks. */
  readonly development: boolean;
}

export function ensureDependencies(root: string, needs: Needs): Promise<string>;
export function installedIsLocked(lock: Lock | undefined, installed: Lock | undefined, needs: Needs): boolean;
