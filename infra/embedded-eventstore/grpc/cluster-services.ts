// What a client asks before anything else: which calls the server knows, and
// who the leader is. There is one node, and it is this one.
import { GossipService } from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import { ServerFeaturesService } from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import type { sendUnaryData, ServerUnaryCall } from '@grpc/grpc-js';
import { randomUUID } from 'node:crypto';
import { ClusterInfo, EndPoint, MemberInfo, SupportedMethod, SupportedMethods, UUID } from './messages.ts';
import type { GrpcService } from './service.ts';

/** The release whose protocol this server speaks. */
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

/** The address by which the client reached us is one that it can reach. */
function endPoint(authority: string): InstanceType<typeof EndPoint> {
  const { hostname, port } = new URL(`http://${authority}`);
  return new EndPoint().setAddress(hostname.replace(/^\[|\]$/g, '')).setPort(Number(port));
}
