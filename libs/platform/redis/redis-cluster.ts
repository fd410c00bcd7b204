import calculateSlot from 'cluster-key-slot';
import type { ChainableCommander, Redis } from 'ioredis';

import { storeUnavailable } from '#libs/kernel/faults.ts';

import { ClusterNodes } from './cluster-nodes.ts';
import type { NodeAddress } from './cluster-map.ts';
import type { FunctionCall, RedisClient, Reply } from './redis-client.ts';
import { guarded, isReplyError, redisFault } from './redis-faults.ts';
import { scanNode } from './single-redis.ts';

/** A command on keys of one slot, to be sent together with others. */
interface SlotCommand {
  readonly slot: number;
  addTo(pipeline: ChainableCommander): void;
}

/** The target of a refused command. `ask`: for this command only, because the slot is migrating. */
interface Redirection {
  readonly kind: 'moved' | 'ask';
  readonly to: NodeAddress;
}

interface Target {
  readonly node: Redis;
  readonly asking: boolean;
}

type RawReply = readonly [Error | null, unknown];

/** A command, the node that it is sent to, and the last reply: that there is no node, to begin with. */
interface Sent {
  readonly command: SlotCommand;
  target: Target | null;
  reply: RawReply;
}

/** A slot may move again meanwhile. */
const MAX_REDIRECTIONS = 5;
/** The target of a redirection may not be connected yet. */
const CONNECT_WAIT_MS = 1_500;

const REDIRECTION = /^(MOVED|ASK) \d+ (\S+)$/;

/**
 * The masters of a Redis Cluster, with a connection to each. Replicas are not read, because they lag.
 *
 * See docs/decisions/0018 for the reasons to do this without ioredis' Cluster. A command that a node refuses with MOVED
 * or ASK had no effect, so it is sent to the node in the reply; no other command is sent twice.
 */
export class RedisCluster extends ClusterNodes implements RedisClient {
  readonly isOneServer = false;

  async send<T>(key: string, command: (node: Redis) => Promise<T>): Promise<T> {
    let target = this.#targetOf(calculateSlot(key));
    for (let redirections = 0; ; redirections++) {
      if (target === null) throw storeUnavailable('Redis');
      try {
        // In one iteration of the event loop, so that no other command comes in between.
        if (target.asking) target.node.asking().catch(() => undefined);
        return await command(target.node);
      } catch (error) {
        const redirection = redirectionOf(error);
        if (redirection === null || redirections === MAX_REDIRECTIONS) throw this.#fault(error);
        target = await this.#follow(redirection);
      }
    }
  }

  async values(keys: readonly string[]): Promise<(Buffer | null | Error)[]> {
    const groups = [...Map.groupBy(keys.keys(), (index) => calculateSlot(keys[index] ?? ''))];
    const replies = await this.#run(
      groups.map(([slot, indexes]) => ({
        slot,
        addTo: (pipeline) => void pipeline.mgetBuffer(indexes.map((index) => keys[index] ?? '')),
      })),
    );
    const values: (Buffer | null | Error)[] = Array.from({ length: keys.length }, () => null);
    for (const [at, [, indexes]] of groups.entries()) {
      const [error, found] = replies[at] ?? [null, null];
      // The reply to `MGET` of the commands above.
      for (const [nth, index] of indexes.entries()) values[index] = error ?? (found as (Buffer | null)[])[nth] ?? null;
    }
    const failed = replies.map(([error]) => error).filter((error) => error !== null);
    if (failed.length > 0 && failed.length === replies.length) throw failed[0];
    return values;
  }

  async call(calls: readonly FunctionCall[]): Promise<Reply<unknown>[]> {
    const replies = await this.#run(
      calls.map(({ name, keys, args }) => ({
        slot: calculateSlot(keys[0] ?? ''),
        addTo: (pipeline) => void pipeline.fcall(name, keys.length, ...keys, ...args),
      })),
    );
    return replies.map(([error, value]) => (error === null ? { ok: true, value } : { ok: false, error }));
  }

  async loadFunctions(source: string): Promise<void> {
    const loads = await Promise.allSettled(
      this.nodes().map((node) => guarded(node.function('LOAD', 'REPLACE', source))),
    );
    const failed = loads.filter((load) => load.status === 'rejected');
    if (failed.length === loads.length) throw failed[0]?.reason ?? storeUnavailable('Redis');
  }

  async remove(keys: readonly string[]): Promise<number> {
    const replies = await this.#run(
      [...Map.groupBy(keys, calculateSlot)].map(([slot, some]) => ({
        slot,
        addTo: (pipeline) => void pipeline.unlink(...some),
      })),
    );
    return replies.reduce((sum, [error, removed]) => {
      if (error !== null) throw error;
      return sum + Number(removed);
    }, 0);
  }

  async *scan(match: string, step: number): AsyncGenerator<readonly string[]> {
    const masters = this.nodes();
    if (masters.length === 0) throw storeUnavailable('Redis');
    for (const node of masters) yield* scanNode(node, match, step);
  }

  async ping(): Promise<{ readonly node: string; readonly answers: boolean }[]> {
    const answers = await Promise.all(
      this.addresses().map(async (node) => ({
        node,
        answers: await this.connectionTo(node)
          .ping()
          .then(
            () => true,
            () => false,
          ),
      })),
    );
    if (!answers.some(({ answers }) => answers)) throw storeUnavailable('Redis');
    return answers;
  }

  nodeOf(key: string): Redis | null {
    return this.#targetOf(calculateSlot(key))?.node ?? null;
  }

  /** Runs commands together, and follows their redirections. Errors are mapped by `redisFault`. */
  async #run(commands: readonly SlotCommand[]): Promise<RawReply[]> {
    const all = commands.map((command): Sent => {
      return { command, target: this.#targetOf(command.slot), reply: [storeUnavailable('Redis'), null] };
    });
    let waiting = all;
    for (let redirections = 0; waiting.length > 0; redirections++) {
      await sendTogether(waiting);
      if (redirections === MAX_REDIRECTIONS) break;
      const redirected = await Promise.all(waiting.map((sent) => this.#redirect(sent)));
      waiting = waiting.filter((_, index) => redirected[index]);
    }
    return all.map(({ reply: [error, value] }) => [error === null ? null : this.#fault(error), value]);
  }

  /** @returns whether the command is to be sent again */
  async #redirect(sent: Sent): Promise<boolean> {
    const redirection = redirectionOf(sent.reply[0]);
    if (redirection === null) return false;
    sent.target = await this.#follow(redirection);
    return true;
  }

  #targetOf(slot: number): Target | null {
    const owner = this.ownerOf(slot);
    return owner === null ? null : { node: this.connectionTo(owner), asking: false };
  }

  async #follow({ kind, to }: Redirection): Promise<Target> {
    if (kind === 'moved') this.refresh();
    const node = this.connectionTo(to);
    await connected(node);
    return { node, asking: kind === 'ask' };
  }

  #fault(error: unknown): Error {
    // Signs of a failover: the map is about to change.
    if (isReplyError(error) && /^(CLUSTERDOWN|MOVED|READONLY)\b/.test(error.message)) this.refresh();
    const fault = redisFault(error);
    return fault instanceof Error ? fault : new Error(String(fault));
  }
}

/** Sends one pipeline to each node. */
async function sendTogether(commands: readonly Sent[]): Promise<void> {
  const byNode = Map.groupBy(commands, ({ target }) => target?.node);
  await Promise.all(
    [...byNode].map(async ([node, some]) => {
      if (node === undefined) return;
      const pipeline = node.pipeline();
      const places = some.map(({ command, target }) => {
        if (target?.asking === true) pipeline.asking();
        command.addTo(pipeline);
        return pipeline.length - 1;
      });
      const replies = (await pipeline.exec()) ?? [];
      for (const [index, sent] of some.entries()) {
        sent.reply = replies[places[index] ?? -1] ?? [storeUnavailable('Redis'), null];
      }
    }),
  );
}

function redirectionOf(error: unknown): Redirection | null {
  const [, kind, to] = (isReplyError(error) && REDIRECTION.exec(error.message)) || [];
  return to === undefined ? null : { kind: kind === 'ASK' ? 'ask' : 'moved', to };
}

/** Resolves when the node is connected, its connection fails, or the time limit is over. */
async function connected(node: Redis): Promise<void> {
  if (node.status === 'ready') return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      node.off('ready', done);
      node.off('close', done);
      resolve();
    };
    const timer = setTimeout(done, CONNECT_WAIT_MS);
    node.on('ready', done);
    node.on('close', done);
  });
}
