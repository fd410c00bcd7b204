import type { ServiceDefinition, UntypedServiceImplementation } from '@grpc/grpc-js';

/** One gRPC service of the server, with what it advertises to clients. */
export type GrpcService = {
  definition: ServiceDefinition;
  implementation: UntypedServiceImplementation;
  /** Feature names per method name (as in the definition's path, e.g. `Read`); clients ask for them before they call. */
  features?: Record<string, readonly string[]>;
  /** Ends open streams (with CANCELLED) and timers; the log is still open. */
  stop?(): Promise<void> | void;
};
