/** A Redis Cluster for one test file, of native processes on loopback, with ways to make its nodes fail. */
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import calculateSlot from 'cluster-key-slot';
import { Redis } from 'ioredis';

import { type RedisProcess, startRedisProcess } from '#infra/private-redis/redis-process.ts';
import { SLOTS } from '#libs/platform/redis/cluster-map.ts';

import { eventually } from './eventually.ts';
import { onFreePort } from './on-free-port.ts';

export interface TestRedisNode {
  readonly port: number;
  readonly pid: number;
  /** `kill -9`; resolves when the process has exited. `restart` uses the same data. */
  kill9(): Promise<void>;
  /** SIGSTOP: connections stay open, requests get no answer. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
  restart(): Promise<void>;
  /** Sends one command on a new connection. */
  command(...words: readonly [string, ...string[]]): Promise<unknown>;
}

export interface TestRedisCluster {
  /** Lists the masters of the start. */
  readonly url: string;
  /** Each has a third of the slots at the start. */
  readonly masters: readonly [TestRedisNode, TestRedisNode, TestRedisNode];
  /** One for each of the masters, or none. */
  readonly replicas: readonly TestRedisNode[];
  /** The master that had the key's slot at the start. */
  masterOf(key: string): TestRedisNode;
  /** Moves a slot with its keys, as `redis-cli --cluster reshard` does. */
  moveSlot(slot: number, from: TestRedisNode, to: TestRedisNode): Promise<void>;
  /** Ends it and removes its data. */
  stop(): Promise<void>;
}

/** Time until a silent master is replaced: longer than a process may stall on a busy machine. */
const NODE_TIMEOUT_MS = 3_000;
const FORM_MS = 60_000;

export async function startTestRedisCluster(options: { replicas?: boolean } = {}): Promise<TestRedisCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-test-redis-cluster-'));
  const password = randomBytes(12).toString('hex');
  const nodes = await Promise.all(
    Array.from({ length: options.replicas === true ? 6 : 3 }, (_, n) => startNode(join(folder, String(n)), password)),
  );
  const [a, b, c, ...replicas] = nodes;
  if (a === undefined || b === undefined || c === undefined) throw new Error('three nodes were started');
  const masters = [a, b, c] as const;
  const cluster: TestRedisCluster = {
    url: masters.map(({ port }) => `redis://:${password}@127.0.0.1:${port}`).join(','),
    masters,
    replicas,
    masterOf: (key) => masters[thirdOf(calculateSlot(key))] ?? a,
    moveSlot: (slot, from, to) => moveSlot(slot, { from, to, others: masters, password }),
    async stop() {
      await Promise.all(nodes.map((node) => node.kill9()));
      await rm(folder, { recursive: true, force: true });
    },
  };
  try {
    await form(masters, replicas);
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  return cluster;
}

const thirdOf = (slot: number): number => Math.min(2, Math.floor(slot / Math.ceil(SLOTS / 3)));

async function form(masters: readonly TestRedisNode[], replicas: readonly TestRedisNode[]): Promise<void> {
  const third = Math.ceil(SLOTS / 3);
  await Promise.all(
    masters.map(async (node, n) => {
      await node.command('CLUSTER', 'SET-CONFIG-EPOCH', String(n + 1));
      const last = Math.min(SLOTS, (n + 1) * third) - 1;
      await node.command('CLUSTER', 'ADDSLOTSRANGE', String(n * third), String(last));
    }),
  );
  const [first, ...others] = [...masters, ...replicas];
  for (const { port } of others)
    await first?.command('CLUSTER', 'MEET', '127.0.0.1', String(port), String(busPortOf(port)));
  const all = [...masters, ...replicas];
  await eventually(async () => (await knownTo(all)).every((known) => known === all.length), { timeoutMs: FORM_MS });
  for (const [n, replica] of replicas.entries()) {
    await replica.command('CLUSTER', 'REPLICATE', String(await masters[n]?.command('CLUSTER', 'MYID')));
  }
  await eventually(async () => (await Promise.all(all.map(isOk))).every(Boolean), { timeoutMs: FORM_MS });
  const synced = async (replica: TestRedisNode): Promise<boolean> =>
    String(await replica.command('INFO', 'replication')).includes('master_link_status:up');
  await eventually(async () => (await Promise.all(replicas.map(synced))).every(Boolean), { timeoutMs: FORM_MS });
}

function knownTo(nodes: readonly TestRedisNode[]): Promise<number[]> {
  return Promise.all(
    nodes.map(async (node) => {
      const lines = String(await node.command('CLUSTER', 'NODES')).trim();
      return lines.split('\n').filter((line) => !/handshake|noaddr/.test(line)).length;
    }),
  );
}

async function isOk(node: TestRedisNode): Promise<boolean> {
  const info = String(await node.command('CLUSTER', 'INFO'));
  return info.includes('cluster_state:ok') && info.includes(`cluster_slots_assigned:${SLOTS}`);
}

async function startNode(dataDir: string, password: string): Promise<TestRedisNode> {
  await mkdir(dataDir);
  const start = (port: number): Promise<RedisProcess> =>
    startRedisProcess({
      dataDir,
      port,
      password,
      extraConfig: [
        'cluster-enabled yes',
        `cluster-node-timeout ${NODE_TIMEOUT_MS}`,
        // A node that is down takes only its own slots with it.
        'cluster-require-full-coverage no',
        `masterauth ${password}`,
        // The default, the node's port plus 10,000, may exceed the highest port.
        `cluster-port ${busPortOf(port)}`,
      ],
    });
  let node = await onFreePort(start);
  const { port, url } = node;
  return {
    port,
    get pid() {
      return node.pid;
    },
    async kill9() {
      node.kill('SIGKILL');
      await node.exited;
    },
    pause: () => node.kill('SIGSTOP'),
    resume: () => node.kill('SIGCONT'),
    async restart() {
      await node.stop();
      node = await start(port);
    },
    async command(name, ...words) {
      const client = new Redis(url, { maxRetriesPerRequest: 1 });
      try {
        return await client.call(name, ...words);
      } finally {
        client.disconnect();
      }
    },
  };
}

/** Below the range of free ports, and different for each of them. */
function busPortOf(port: number): number {
  return port - 15_000;
}

async function moveSlot(
  slot: number,
  way: {
    readonly from: TestRedisNode;
    readonly to: TestRedisNode;
    readonly others: readonly TestRedisNode[];
    readonly password: string;
  },
): Promise<void> {
  const { from, to, others, password } = way;
  const [fromId, toId] = (await Promise.all([from, to].map((node) => node.command('CLUSTER', 'MYID')))).map(String);
  await to.command('CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', String(fromId));
  await from.command('CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', String(toId));
  for (;;) {
    const keys = await from.command('CLUSTER', 'GETKEYSINSLOT', String(slot), '100');
    if (!Array.isArray(keys) || keys.length === 0) break;
    const rest = ['', '0', '5000', 'AUTH', password, 'KEYS', ...keys.map(String)];
    await from.command('MIGRATE', '127.0.0.1', String(to.port), ...rest);
  }
  // The new owner first: it raises its epoch, so that the other nodes accept the change.
  for (const node of new Set([to, from, ...others])) {
    await node.command('CLUSTER', 'SETSLOT', String(slot), 'NODE', String(toId));
  }
}
