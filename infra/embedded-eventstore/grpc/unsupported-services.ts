// What this server does not do is refused by name.
import { MonitoringService } from '@eventstore/db-client/generated/monitoring_grpc_pb.js';
import { OperationsService } from '@eventstore/db-client/generated/operations_grpc_pb.js';
import { ProjectionsService } from '@eventstore/db-client/generated/projections_grpc_pb.js';
import { UsersService } from '@eventstore/db-client/generated/users_grpc_pb.js';
import { status } from '@grpc/grpc-js';
import type { sendUnaryData, ServerWritableStream, ServiceDefinition } from '@grpc/grpc-js';
import { CallError } from './errors.ts';
import type { GrpcService } from './service.ts';

export function unsupportedServices(): GrpcService[] {
  return [
    refuse(UsersService, 'users'),
    refuse(ProjectionsService, 'server-side projections'),
    refuse(OperationsService, 'server operations'),
    refuse(MonitoringService, 'server statistics'),
  ];
}

function refuse(definition: ServiceDefinition, what: string): GrpcService {
  const message = `The embedded event store has no ${what}. Use a real EventStoreDB for that.`;
  const error = new CallError(status.UNIMPLEMENTED, message).toStatus();
  const implementation = Object.entries(definition).map(([name, method]) => [
    name,
    method.responseStream
      ? (call: ServerWritableStream<unknown, unknown>) => call.emit('error', error)
      : (_call: unknown, callback: sendUnaryData<unknown>) => callback(error),
  ]);
  return { definition, implementation: Object.fromEntries(implementation) };
}
