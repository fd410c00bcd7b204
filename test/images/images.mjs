// Names of the images, and which of them are used: what a registry has, or, where none is reached, what
// build.mjs makes here of packages. No registry has the names that begin with `parley-local/`.

export const DEBIAN_IMAGE = 'parley-local/debian:1';
export const BASE_IMAGE = 'parley-local/base:1';
/** The proxy of test/images/compose.local.yaml. */
export const CADDY_IMAGE = 'parley-local/caddy:1';
/** What infra/Dockerfile makes, for the tests of it. */
export const PARLEY_IMAGE = 'parley-local/parley:1';

/** By which testcontainers ends what a killed run has left; that of the version in package.json. */
export const REAPER_IMAGE = process.env.RYUK_CONTAINER_IMAGE || 'testcontainers/ryuk:0.14.0';

/**
 * - `fromRegistry`: the usual one
 * - `local`: made by build.mjs. That of the event store is the embedded one as a server, not EventStoreDB
 * - `variable`: of the environment; names the image to use instead
 */
export const STORE_IMAGES = {
  redis: { fromRegistry: 'redis:7.4-bookworm', local: 'parley-local/redis:1', variable: 'PARLEY_IMAGE_REDIS' },
  eventstore: {
    fromRegistry: 'eventstore/eventstore:24.10.0-bookworm-slim',
    local: 'parley-local/embedded-event-store:1',
    variable: 'PARLEY_IMAGE_EVENTSTORE',
  },
  kafka: { fromRegistry: 'apache/kafka:4.1.0', local: 'parley-local/kafka:1', variable: 'PARLEY_IMAGE_KAFKA' },
};

/** In the order in which they are looked for. One that the environment names is the only one. */
export function candidatesOf(kind, env = process.env) {
  const { fromRegistry, local, variable } = STORE_IMAGES[kind];
  const named = env[variable];
  return named ? [named] : [fromRegistry, local];
}
