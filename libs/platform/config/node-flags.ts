/**
 * Measured on two cores under load: a larger young generation and a collector without helper threads, which compete
 * with the event loop for the cores, cut the slowest answers. `infra/set-up/start.mjs` says the same before this can
 * be read; a test compares.
 */
export const DEFAULT_NODE_FLAGS = '--max-semi-space-size=64 --single-threaded-gc';
