import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { installedIsLocked } from '#infra/set-up/dependencies.mjs';

const root = join(import.meta.dirname, '../../..');

const names = z.record(z.string(), z.string()).default({});
const manifestSchema = z.object({
  dependencies: names,
  devDependencies: names,
  allowScripts: z.record(z.string(), z.boolean()),
});
const lockSchema = z.object({
  packages: z.record(
    z.string(),
    z.object({
      version: z.string().optional(),
      resolved: z.string().optional(),
      hasInstallScript: z.boolean().default(false),
      dependencies: names,
      devDependencies: names,
      optionalDependencies: names,
    }),
  ),
});

const manifest = manifestSchema.parse(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')));
const { packages } = lockSchema.parse(JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')));

describe('package-lock.json', () => {
  it('is made from package.json, with exact versions', () => {
    const { dependencies, devDependencies } = packages[''] ?? {};
    expect({ dependencies, devDependencies }).toEqual({
      dependencies: manifest.dependencies,
      devDependencies: manifest.devDependencies,
    });
    const direct = Object.values({ ...manifest.dependencies, ...manifest.devDependencies });
    expect(direct.filter((version) => !/^\d/.test(version))).toEqual([]);
  });

  it('names the binaries of every platform, without which `npm ci` fails on all of them', () => {
    // npm drops packages from the lock that a registry does not have.
    const missing = Object.entries(packages).flatMap(([path, { optionalDependencies }]) =>
      Object.keys(optionalDependencies).filter(
        (name) => !(`node_modules/${name}` in packages) && !(`${path}/node_modules/${name}` in packages),
      ),
    );
    expect(missing).toEqual([]);
  });

  it('names no registry, so that everyone may use their own', () => {
    expect(Object.entries(packages).filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
  });

  it('has no install script that package.json does not allow or deny', () => {
    const withScript = Object.entries(packages).filter(([, { hasInstallScript }]) => hasInstallScript);
    const undecided = withScript
      .map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length))
      .filter((name) => !(name in manifest.allowScripts));
    expect(undecided).toEqual([]);
  });
});

describe('installed dependencies', () => {
  const lock = {
    packages: {
      '': {},
      'node_modules/a': { version: '1.0.0', integrity: 'sha512-a' },
      'node_modules/a-for-macs': { version: '1.0.0', optional: true },
      'node_modules/t': { version: '1.0.0', integrity: 'sha512-t', dev: true },
      'node_modules/t-for-macs': { version: '1.0.0', devOptional: true },
    },
  };
  const a = { 'node_modules/a': { version: '1.0.0', integrity: 'sha512-a' } };
  const t = { 'node_modules/t': { version: '1.0.0', integrity: 'sha512-t' } };

  it('match the lock, other platforms aside', () => {
    expect(installedIsLocked(lock, { packages: { ...a, ...t } }, { development: true })).toBe(true);
  });

  it('suffice for a start without the packages of tests', () => {
    expect(installedIsLocked(lock, { packages: a }, { development: false })).toBe(true);
    expect(installedIsLocked(lock, { packages: a }, { development: true })).toBe(false);
  });

  it.each([
    ['nothing is installed', undefined],
    ['a package is missing', { packages: {} }],
    ['a version differs', { packages: { 'node_modules/a': { version: '1.0.1', integrity: 'sha512-a' } } }],
    ['a content differs', { packages: { 'node_modules/a': { version: '1.0.0', integrity: 'sha512-b' } } }],
    ['a version of a test tool differs', { packages: { ...a, 'node_modules/t': { version: '1.0.1' } } }],
  ])('are stale when %s', (_, installed) => {
    expect(installedIsLocked(lock, installed, { development: false })).toBe(false);
  });
});
