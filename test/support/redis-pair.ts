import { startCutProxy } from './cut-proxy.ts';
import { eventually } from './eventually.ts';
import { startTestRedis, type TestRedis } from './redis.ts';

/** Everything that a `TestRedis` can do happens to the master. */
export interface TestRedisPair extends TestRedis {
  /**
   * Promotes the replica, leads new connections to it, and demotes the master, which keeps its connections and refuses
   * writes. Writes that the replica has not received are lost.
   */
  failover(): Promise<void>;
}

/** Of both servers, also after they restart. */
const SECRET = 'of-the-pair';
const config = [`user pair on >${SECRET} ~* &* +@all`, 'masteruser pair', `masterauth ${SECRET}`];

/** A master and its replica behind one address that leads to the master, as a proxy, a service or a virtual address does. */
export async function startTestRedisPair(): Promise<TestRedisPair> {
  const servers = await Promise.all([startTestRedis({ config }), startTestRedis({ config })]);
  let [master, replica] = servers;
  const proxy = await startCutProxy(httpUrl(master));
  await follow(replica, master);
  return {
    url: `redis://pair:${SECRET}@${new URL(proxy.baseUrl).host}`,
    stop: async () => void (await Promise.all([proxy, ...servers].map((part) => part.stop()))),
    kill9: () => master.kill9(),
    pause: () => master.pause(),
    resume: () => master.resume(),
    restart: () => master.restart(),
    command: (...words) => master.command(...words),
    async failover() {
      await eventually(async () => String(await replica.command('INFO', 'replication')).includes('link_status:up'), {
        timeoutMs: 60_000,
      });
      await replica.command('REPLICAOF', 'NO', 'ONE');
      proxy.redirect(httpUrl(replica));
      await follow(master, replica);
      [master, replica] = [replica, master];
    },
  };
}

async function follow(one: TestRedis, other: TestRedis): Promise<void> {
  const { hostname, port } = new URL(other.url);
  await one.command('REPLICAOF', hostname, port);
}

function httpUrl({ url }: TestRedis): string {
  return `http://${new URL(url).host}`;
}
