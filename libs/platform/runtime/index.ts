/** What a process of Parley has in hand: the clients of its stores, its log and its metrics. */
export { openPlatform } from './platform.ts';
export type { Platform, PlatformOptions } from './platform.ts';
