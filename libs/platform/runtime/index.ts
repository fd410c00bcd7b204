/** The parts of a process of Parley: the clients of its stores, its log, its metrics and its modules. */
export {
  openCore,
  openReadModels,
  publishedHeads,
  type Core,
  type ReadModels,
  type BlobReferences,
  type Module,
} from './core.ts';
export { openPlatform } from './platform.ts';
export type { Platform, PlatformOptions } from './platform.ts';
