// event_store.client.persistent_subscriptions.PersistentSubscriptions: consumer
// groups on streams and on `$all`.
import { PersistentSubscriptionsService } from '@eventstore/db-client/generated/persistent_grpc_pb.js';
import persistent from '@eventstore/db-client/generated/persistent_pb.js';
import type {
  CreateReq,
  DeleteReq,
  GetInfoReq,
  ListReq,
  ReplayParkedReq,
  UpdateReq,
} from '@eventstore/db-client/generated/persistent_pb.js';
import { invalidArgument } from '../grpc/errors.ts';
import { Empty } from '../grpc/messages.ts';
import { OpenCalls } from '../grpc/outgoing.ts';
import { parseStreamName } from '../grpc/proposed-event.ts';
import { passThrough, unary } from '../grpc/service.ts';
import type { GrpcService } from '../grpc/service.ts';
import type { EventLog } from '../log/event-log.ts';
import { serveConsumer } from './consumer-session.ts';
import type { ReadCall } from './consumer-session.ts';
import { groupDoesNotExist } from './errors.ts';
import { groupInfo } from './group-info.ts';
import { ALL } from './group-settings.ts';
import { Groups } from './groups.ts';
import { parseDefinition, parseGroupFilter, parseGroupName } from './requests.ts';

const { CreateResp, DeleteResp, GetInfoResp, ListResp, ReplayParkedResp, UpdateResp } = persistent;

const definition = {
  ...PersistentSubscriptionsService,
  read: { ...PersistentSubscriptionsService.read, responseSerialize: passThrough },
};

/** Without these the official client falls back to HTTP/1. */
const BOTH = ['stream', 'all'];
const features = {
  Create: BOTH,
  Update: BOTH,
  Delete: BOTH,
  Read: BOTH,
  GetInfo: BOTH,
  ReplayParked: BOTH,
  List: BOTH,
};

/** Groups and their checkpoints are kept in `log`. */
export function persistentSubscriptionsService(log: EventLog): GrpcService {
  const groups = new Groups(log);
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
      read: (call: ReadCall) => serveConsumer(groups, call, openCalls.open(call)),
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
    async stop() {
      openCalls.stop();
      await groups.stop();
    },
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
