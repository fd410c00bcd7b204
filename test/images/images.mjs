// Names of the images, and which of them are used: those of a registry, or, where none is reachable, those that
// build.mjs makes here of packages. No registry has the names that begin with `parley-local/`.

export const DEBIAN_IMAGE = 'parley-local/debian:1';
export const BASE_IMAGE = 'parley-local/base:1';
/** The proxy of test/images/compose.local.yaml. */
export const CADDY_IMAGE = 'parley-local/caddy:1';
/** The result of infra/Dockerfile, for its tests. */
export const PARLEY_IMAGE = 'parley-local/parley:1';

/** The container with which testcontainers removes the containers of a killed run; of the version in package.json. */
export const REAPER_IMAGE = process.env.RYUK_CONTAINER_IMAGE || 'testcontainers/ryuk:0.14.0';

/**
 * - `fromRegistry`: the default
 * - `local`: made by build.mjs; for the event store, the embedded one as a server instead of EventStoreDB
 * - `variable`: environment variable that names the image to use instead
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

/** In the order of preference. An image that the environment names is the only one. */
export function candidatesOf(kind, env = process.env) {
  const { fromRegistry, local, variable } = STORE_IMAGES[kind];
  const named = env[variable];
  return named ? [named] : [fromRegistry, local];
}
