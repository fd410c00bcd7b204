export type ImageOfHere = 'base' | 'redis' | 'kafka' | 'eventstore' | 'parley';

/** All of them by default. */
export function buildImages(names?: readonly ImageOfHere[]): Promise<void>;
