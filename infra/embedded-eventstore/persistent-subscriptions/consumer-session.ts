// One call of PersistentSubscriptions.Read: the first message names the group,
// the others acknowledge.
import persistent from '@eventstore/db-client/generated/persistent_pb.js';
import type { ReadReq } from '@eventstore/db-client/generated/persistent_pb.js';
import type { ServerDuplexStream } from '@grpc/grpc-js';
import { randomUUID } from 'node:crypto';
import { invalidArgument } from '../grpc/errors.ts';
import { bytesOf } from '../grpc/messages.ts';
import type { Outgoing } from '../grpc/outgoing.ts';
import type { Consumer } from './consumer.ts';
import type { Group } from './group.ts';
import type { Groups } from './groups.ts';
import { parseAction, parseGroupName, parseIds } from './requests.ts';

export type ReadCall = ServerDuplexStream<ReadReq, Buffer>;

export function serveConsumer(groups: Groups, call: ReadCall, out: Outgoing): void {
  let session: { group: Group; consumer: Consumer } | undefined;
  const leave = () => {
    session?.group.disconnect(session.consumer);
    session = undefined;
  };
  out.closed.addEventListener('abort', leave);
  call.on('data', (request: ReadReq) => {
    if (out.isClosed) return;
    try {
      if (session) answer(session.group, session.consumer, request);
      else session = join(groups, call, out, request);
    } catch (error) {
      out.fail(error);
    }
  });
  call.on('end', () => {
    leave();
    out.end();
  });
  // The call is over; `closed` says so too.
  call.on('error', leave);
}

function join(groups: Groups, call: ReadCall, out: Outgoing, request: ReadReq): { group: Group; consumer: Consumer } {
  const options = request.getOptions();
  const group = groups.get(parseGroupName(options));
  const id = randomUUID();
  const consumer = group.connect({
    id,
    out,
    bufferSize: Math.max(1, options?.getBufferSize() ?? 1),
    from: call.getPeer(),
    user: 'anonymous',
    connectionName: String(call.metadata.get('connection-name')[0] ?? ''),
  });
  const confirmation = new persistent.ReadResp.SubscriptionConfirmation().setSubscriptionId(id);
  out.write(bytesOf(new persistent.ReadResp().setSubscriptionConfirmation(confirmation)));
  group.start();
  return { group, consumer };
}

function answer(group: Group, consumer: Consumer, request: ReadReq): void {
  const [ack, nack] = [request.getAck(), request.getNack()];
  if (ack) group.acknowledge(consumer, parseIds(ack.getIdsList()));
  else if (nack) group.refuse(consumer, parseIds(nack.getIdsList()), parseAction(nack), nack.getReason());
  else throw invalidArgument('After its options a subscription may only acknowledge or refuse.');
}
