/** One store in a container, on a port of this machine that survives restarts, with ways to make it fail. */
import { GenericContainer, getContainerRuntimeClient } from 'testcontainers';
import { freePort } from '#infra/private-redis/free-port.ts';
import { eventually } from '#test/support/eventually.ts';

export interface ContainerPlace {
  /** Address for the tests. */
  readonly host: string;
  readonly port: number;
}

export interface StoreContainerOptions {
  readonly image: string;
  /** Port of the store inside the container. */
  readonly innerPort: number;
  readonly command?: readonly string[];
  readonly environment?: (place: ContainerPlace) => Readonly<Record<string, string>>;
  /** Rejects until the store serves requests. */
  readonly probe: (place: ContainerPlace) => Promise<unknown>;
}

export interface StoreContainer extends ContainerPlace {
  /** Ends it and removes its data. */
  stop(): Promise<void>;
  /** SIGKILL; resolves when it has ended. `restart` uses the same data. */
  kill9(): Promise<void>;
  /** Freezes its processes: connections stay open, requests get no answer. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** SIGTERM if it runs, then starts it again on the same port and data. */
  restart(): Promise<void>;
}

const READY_MS = 60_000;
/** Lets `npm run test:containers` remove the containers of a run that was killed. */
const LABELS = { 'parley.test': process.env['PARLEY_TEST_RUN'] ?? '' };

/** Tries further ports, because another process may take a free port first. */
export async function startStoreContainer(options: StoreContainerOptions): Promise<StoreContainer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOn(await freePort(), options);
    } catch (error) {
      if (attempt === 3) throw error;
    }
  }
}

async function startOn(port: number, options: StoreContainerOptions): Promise<StoreContainer> {
  const { image, innerPort, command, environment, probe } = options;
  const client = await getContainerRuntimeClient();
  const place: ContainerPlace = { host: client.info.containerRuntime.host, port };
  const container = new GenericContainer(image)
    .withExposedPorts({ container: innerPort, host: port })
    .withLabels(LABELS)
    .withStartupTimeout(READY_MS);
  if (command !== undefined) container.withCommand([...command]);
  if (environment !== undefined) container.withEnvironment({ ...environment(place) });
  const started = await container.start();
  const raw = client.container.getById(started.getId());
  const state = async () => (await raw.inspect()).State;
  const resume = async (): Promise<void> => {
    if ((await state()).Paused) await raw.unpause();
  };
  const ready = (): Promise<unknown> => eventually(() => probe(place), { timeoutMs: READY_MS, everyMs: 50 });
  const stop = async (): Promise<void> => {
    await resume();
    await raw.remove({ force: true, v: true });
  };
  try {
    await ready();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    ...place,
    stop,
    async kill9() {
      await resume();
      if (!(await state()).Running) return;
      await raw.kill({ signal: 'SIGKILL' });
      await raw.wait();
    },
    pause: () => raw.pause(),
    resume,
    async restart() {
      await resume();
      if ((await state()).Running) await raw.stop({ t: 10 });
      await raw.start();
      await ready();
    },
  };
}
