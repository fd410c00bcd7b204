/**
 * Measured on two cores under load: a larger young generation, and a collector without helper threads, which compete
 * with the event loop for the cores, reduce the slowest answers. `infra/set-up/start.mjs` repeats the value, because it
 * cannot import this file; a test compares them.
 */
export const DEFAULT_NODE_FLAGS = '--max-semi-space-size=64 --single-threaded-gc';
