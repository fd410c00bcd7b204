// The protocol's messages, from the generated code inside the official client
// package: CommonJS without static export names, hence the default imports.
import code from '@eventstore/db-client/generated/code_pb.js';
import gossip from '@eventstore/db-client/generated/gossip_pb.js';
import serverFeatures from '@eventstore/db-client/generated/serverfeatures_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import status from '@eventstore/db-client/generated/status_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import any from 'google-protobuf/google/protobuf/any_pb.js';
import empty from 'google-protobuf/google/protobuf/empty_pb.js';

export const { AllStreamPosition, Empty, MaximumAppendSizeExceeded, StreamDeleted, Timeout, UUID } = shared;
export const { WrongExpectedVersion } = shared;
const { StreamIdentifier } = shared;
export const { AppendReq, AppendResp, BatchAppendReq, BatchAppendResp, DeleteResp, ReadResp, TombstoneResp } = streams;
export const { ClusterInfo, EndPoint, MemberInfo } = gossip;
export const { SupportedMethod, SupportedMethods } = serverFeatures;
export const { Code } = code;
export const { Status } = status;
export const { Any } = any;
export const GoogleEmpty = empty.Empty;

/** Sets a position; commit and prepare position are always the same. */
export function positionIn<M extends { setCommitPosition(to: string): M; setPreparePosition(to: string): M }>(
  message: M,
  position: number,
): M {
  return message.setCommitPosition(String(position)).setPreparePosition(String(position));
}

export function streamIdentifier(stream: string): InstanceType<typeof StreamIdentifier> {
  return new StreamIdentifier().setStreamName(Buffer.from(stream));
}

export function bytesOf(message: { serializeBinary(): Uint8Array }): Buffer {
  return Buffer.from(message.serializeBinary());
}
