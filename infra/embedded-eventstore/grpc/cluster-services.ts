// Gossip and server features, which clients request first (the only node is
// the leader), and the services that this server does not have.
import { GossipService } from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import { MonitoringService } from '@eventstore/db-client/generated/monitoring_grpc_pb.js';
import { OperationsService } from '@eventstore/db-client/generated/operations_grpc_pb.js';
import { ProjectionsService } from '@eventstore/db-client/generated/projections_grpc_pb.js';
import { ServerFeaturesService } from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import { UsersService } from '@eventstore/db-client/generated/users_grpc_pb.js';
import {
  type sendUnaryData,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  status,
} from '@grpc/grpc-js';
import { randomUUID } from 'node:crypto';
import { CallError } from './errors.ts';
import { ClusterInfo, EndPoint, MemberInfo, SupportedMethod, SupportedMethods, UUID } from './messages.ts';
import type { GrpcService } from './service.ts';

/** The release whose protocol this server implements. */
const PROTOCOL_VERSION = '23.10.0';

export function serverFeaturesService(services: readonly GrpcService[]): GrpcService {
  const supported = new SupportedMethods().setEventStoreServerVersion(PROTOCOL_VERSION);
  supported.setMethodsList(services.flatMap(methodsOf));
  return {
    definition: ServerFeaturesService,
    implementation: {
      getSupportedMethods: (_call: unknown, callback: sendUnaryData<unknown>) => callback(null, supported),
    },
  };
}

/** Clients compare names in lower case. */
function methodsOf({ definition, features = {} }: GrpcService) {
  return Object.values(definition).map(({ path }) => {
    const [, service = '', method = ''] = path.split('/');
    const supported = new SupportedMethod().setServiceName(service.toLowerCase());
    return supported.setMethodName(method.toLowerCase()).setFeaturesList([...(features[method] ?? [])]);
  });
}

export function gossipService(): GrpcService {
  const instanceId = new UUID().setString(randomUUID());
  return {
    definition: GossipService,
    implementation: {
      read: (call: ServerUnaryCall<unknown, unknown>, callback: sendUnaryData<unknown>) => {
        const member = new MemberInfo().setInstanceId(instanceId).setTimeStamp(String(Date.now() * 10_000));
        member.setState(MemberInfo.VNodeState.LEADER).setIsAlive(true).setHttpEndPoint(endPoint(call.getHost()));
        callback(null, new ClusterInfo().setMembersList([member]));
      },
    },
  };
}

/** The address through which the client reached this server. */
function endPoint(authority: string): InstanceType<typeof EndPoint> {
  const { hostname, port } = new URL(`http://${authority}`);
  return new EndPoint().setAddress(hostname.replace(/^\[|\]$/g, '')).setPort(Number(port));
}

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
