/** The parts of a process of Parley: the clients of its stores, its log, its metrics and its modules. */
export { openCore, openReadModels, publishedHeads } from './core.ts';
export type { Core, ReadModels } from './core.ts';
export type { BlobReferences, Module } from './module.ts';
export { openPlatform } from './platform.ts';
export type { Platform, PlatformOptions } from './platform.ts';
