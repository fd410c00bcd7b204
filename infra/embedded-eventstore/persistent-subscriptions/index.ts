// event_store.client.persistent_subscriptions.PersistentSubscriptions: consumer groups on streams and on `$all`.
import { PersistentSubscriptionsService } from '@eventstore/db-client/generated/persistent_grpc_pb.js';
import persistent, {
  type CreateReq,
  type DeleteReq,
  type GetInfoReq,
  type ListReq,
  type ReadReq,
  type ReplayParkedReq,
  type UpdateReq,
} from '@eventstore/db-client/generated/persistent_pb.js';
import type { ServerDuplexStream } from '@grpc/grpc-js';
import { randomUUID } from 'node:crypto';
import { invalidArgument } from '../grpc/errors.ts';
import { bytesOf, Empty } from '../grpc/messages.ts';
import { OpenCalls, type Outgoing } from '../grpc/outgoing.ts';
import { eventResponse } from '../grpc/read-responses.ts';
import { parseStreamName } from '../grpc/proposed-event.ts';
import { passThrough, unary, type GrpcService } from '../grpc/service.ts';
import type { Consumer } from './consumer.ts';
import type { Group } from './group.ts';
import { groupInfo } from './group-info.ts';
import { ALL, groupDoesNotExist } from './group-settings.ts';
import type { Groups } from './groups.ts';
import { parseAction, parseDefinition, parseGroupFilter, parseGroupName, parseIds } from './requests.ts';

const { CreateResp, DeleteResp, GetInfoResp, ListResp, ReadResp, ReplayParkedResp, UpdateResp } = persistent;

const definition = {
  ...PersistentSubscriptionsService,
  read: { ...PersistentSubscriptionsService.read, responseSerialize: passThrough },
};

/** Without these features the official client falls back to HTTP/1. */
const methods = ['Create', 'Update', 'Delete', 'Read', 'GetInfo', 'ReplayParked', 'List'];
const features = Object.fromEntries(methods.map((method) => [method, ['stream', 'all']]));

/** @param maxBytes of messages in flight to one consumer */
export function persistentSubscriptionsService(groups: Groups, maxBytes: number): GrpcService {
  const openCalls = new OpenCalls();
  return {
    definition,
    features,
    implementation: {
      create: unary(async (request: CreateReq) => {
        const options = request.getOptions();
        const { name, settings } = parseDefinition(options);
        await groups.create(name, settings, parseGroupFilter(options?.getAll()));
        return new CreateResp();
      }),
      update: unary(async (request: UpdateReq) => {
        const { name, settings } = parseDefinition(request.getOptions());
        await groups.update(name, settings);
        return new UpdateResp();
      }),
      delete: unary(async (request: DeleteReq) => {
        await groups.delete(parseGroupName(request.getOptions()));
        return new DeleteResp();
      }),
      read: (call: ReadCall) => serveConsumer({ groups, maxBytes }, call, openCalls.open(call)),
      getInfo: unary(async (request: GetInfoReq) => {
        const group = groups.get(parseGroupName(request.getOptions()));
        return new GetInfoResp().setSubscriptionInfo(groupInfo(group));
      }),
      replayParked: unary(async (request: ReplayParkedReq) => {
        const options = request.getOptions();
        const group = groups.get(parseGroupName(options));
        group.replayParked(options?.hasStopAt() ? Number(options.getStopAt()) : undefined);
        return new ReplayParkedResp();
      }),
      list: unary(async (request: ListReq) => list(groups, request)),
      restartSubsystem: unary(async () => {
        await groups.restart();
        return new Empty();
      }),
    },
    stop: () => openCalls.stop(),
  };
}

function list(groups: Groups, request: ListReq): InstanceType<typeof ListResp> {
  const options = request.getOptions();
  if (!options) throw invalidArgument('A list needs options.');
  const of = options.getListForStream();
  if (!of) return new ListResp().setSubscriptionsList(groups.list().map(groupInfo));
  const source = of.getAll() ? ALL : parseStreamName(of.getStream());
  const found = groups.list(source);
  if (found.length === 0) throw groupDoesNotExist({ source, group: '' });
  return new ListResp().setSubscriptionsList(found.map(groupInfo));
}

type ReadCall = ServerDuplexStream<ReadReq, Buffer>;

interface Service {
  readonly groups: Groups;
  readonly maxBytes: number;
}

/** Serves one Read call: its first message names the group, the others acknowledge. */
function serveConsumer(service: Service, call: ReadCall, out: Outgoing): void {
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
      else session = join(service, call, out, request);
    } catch (error) {
      out.fail(error);
    }
  });
  call.on('end', () => {
    leave();
    out.end();
  });
  call.on('error', leave);
}

function join(
  { groups, maxBytes }: Service,
  call: ReadCall,
  out: Outgoing,
  request: ReadReq,
): { group: Group; consumer: Consumer } {
  const options = request.getOptions();
  const name = parseGroupName(options);
  const group = groups.get(name);
  const id = randomUUID();
  const consumer = group.connect({
    id,
    send: (message) => void out.write(eventResponse(message, { retryCount: message.retryCount })),
    fail: (error) => out.fail(error),
    bufferSize: Math.max(1, options?.getBufferSize() ?? 1),
    maxBytes,
    from: call.getPeer(),
    connectionName: String(call.metadata.get('connection-name')[0] ?? ''),
  });
  // Clients of other languages send it back with their answers, and refuse any other form.
  const subscriptionId = `${name.source}::${name.group}`;
  const confirmation = new ReadResp.SubscriptionConfirmation().setSubscriptionId(subscriptionId);
  out.write(bytesOf(new ReadResp().setSubscriptionConfirmation(confirmation)));
  group.pump();
  return { group, consumer };
}

function answer(group: Group, consumer: Consumer, request: ReadReq): void {
  const [ack, nack] = [request.getAck(), request.getNack()];
  if (ack) group.acknowledge(consumer, parseIds(ack.getIdsList()));
  else if (nack) group.refuse(consumer, parseIds(nack.getIdsList()), parseAction(nack), nack.getReason());
  else throw invalidArgument('After its options a subscription can only acknowledge or refuse.');
}
