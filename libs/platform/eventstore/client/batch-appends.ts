import type { EventStoreDBClient } from '@eventstore/db-client';
import { unpackToCommandError } from '@eventstore/db-client/dist/streams/appendToStream/unpackError.js';
import { convertToCommandError } from '@eventstore/db-client/dist/utils/CommandError.js';
import { parseUUID } from '@eventstore/db-client/dist/utils/grpcUUID.js';
import { StreamsClient, StreamsService } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { BatchAppendResp } from '@eventstore/db-client/generated/streams_pb.js';
import type { ClientDuplexStream } from '@grpc/grpc-js';
import { randomUUID } from 'node:crypto';
import { streamRevision } from '#libs/kernel/event.ts';

import { encodeAppendRequest, type AppendRequest } from './append-request.ts';
import { encoded, openCall, type Opening } from './open-call.ts';
import type { AppendResult } from '../event-store.ts';

type BatchStream = ClientDuplexStream<Buffer, BatchAppendResp>;

/**
 * For a message above the server's limit, the server ends the stream, with all its appends. That limit is above the size
 * of an append that it accepts, usually 1 MiB.
 */
const MAX_REQUEST_BYTES = 3 * 1024 * 1024;

interface Unanswered {
  readonly batches: BatchStream;
  readonly stream: string;
  resolve(result: AppendResult): void;
  reject(error: unknown): void;
}

/**
 * Batch appends on the connection of the official client, in place of its `appendToStream`, which encodes events at a
 * higher cost, and keeps one table of unanswered appends for all clients of the process.
 */
export class BatchAppends {
  readonly #client: EventStoreDBClient;
  readonly #onDefect: (error: unknown) => void;
  readonly #open = new WeakMap<object, BatchStream>();
  /** By correlation id. */
  readonly #unanswered = new Map<string, Unanswered>();

  /** @param onDefect called with the errors of answers that belong to no append, or lack required fields */
  constructor(client: EventStoreDBClient, onDefect: (error: unknown) => void) {
    this.#client = client;
    this.#onDefect = onDefect;
  }

  /**
   * Sends the request without waiting for earlier ones; a congested stream keeps it in memory. Has no time limit.
   *
   * @throws the errors of the client: of the server's answer, or of the stream if it breaks before that; RangeError
   */
  async append(request: Omit<AppendRequest, 'correlationId'>): Promise<AppendResult> {
    const correlationId = randomUUID();
    const bytes = encodeAppendRequest({ ...request, correlationId });
    if (bytes.length > MAX_REQUEST_BYTES) throw new RangeError(`the append has ${bytes.length} bytes`);
    const batches = await this.#batches();
    return new Promise((resolve, reject) => {
      this.#unanswered.set(correlationId, { batches, stream: request.stream, resolve, reject });
      batches.write(bytes);
    });
  }

  #batches(): Promise<BatchStream> {
    const make: Opening<BatchStream>['make'] = (grpc, ...rest) => {
      const { path, responseDeserialize } = StreamsService.batchAppend;
      const batches = grpc.makeBidiStreamRequest(path, encoded, responseDeserialize, ...rest);
      batches.on('data', (answer: BatchAppendResp) => this.#onAnswer(answer));
      batches.on('error', (error) => this.#onBroken(batches, error));
      // Without an error, the client would use the stream again and again, and no append would get an answer.
      batches.on('end', () => batches.destroy(new Error('the server ended the stream of appends')));
      return batches;
    };
    return openCall(this.#client, { service: StreamsClient, name: 'appendToStream', open: this.#open, make });
  }

  #onAnswer(answer: BatchAppendResp): void {
    const id = parseUUID(answer.getCorrelationId()) ?? '';
    const unanswered = this.#unanswered.get(id);
    this.#unanswered.delete(id);
    try {
      if (unanswered === undefined) throw new TypeError(`no append waits for the answer ${id}`);
      const error = answer.getError();
      if (error !== undefined) return unanswered.reject(unpackToCommandError(error, unanswered.stream));
      unanswered.resolve(resultOf(answer.getSuccess()));
    } catch (defect) {
      unanswered?.reject(defect);
      this.#onDefect(defect);
    }
  }

  #onBroken(broken: BatchStream, error: Error): void {
    const failure = convertToCommandError(error);
    for (const [id, { batches, reject }] of this.#unanswered) {
      if (batches !== broken) continue;
      this.#unanswered.delete(id);
      reject(failure);
    }
  }
}

function resultOf(success: BatchAppendResp.Success | undefined): AppendResult {
  if (success === undefined) throw new TypeError('an answer has neither a success nor an error');
  const position = success.getPosition();
  return {
    kind: 'appended',
    revision: streamRevision(Number(success.getCurrentRevision())),
    position: position
      ? { commit: BigInt(position.getCommitPosition()), prepare: BigInt(position.getPreparePosition()) }
      : null,
  };
}
