/**
 * Chooses where stores of tests come from: a URL in the environment, else a container if Docker has the image, else a
 * native process. The functions that start a store read the URL; this file decides the rest.
 */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { candidatesOf, REAPER_IMAGE, type StoreKind } from '#test/images/images.mjs';

export const STORE_KINDS = ['redis', 'eventstore', 'kafka'] as const satisfies readonly StoreKind[];

const choiceSchema = z.discriminatedUnion('from', [
  z.object({ from: z.literal('container'), image: z.string() }),
  z.object({ from: z.literal('native') }),
]);
export type StoreChoice = z.infer<typeof choiceSchema>;

const choicesSchema = z.object({ redis: choiceSchema, eventstore: choiceSchema, kafka: choiceSchema });
export type StoreChoices = z.infer<typeof choicesSchema>;

const modeSchema = z.enum(['auto', 'native', 'containers']);
type Mode = z.infer<typeof modeSchema>;

/** Environment variable with the choices of the run, for the processes of its test files. */
const DECIDED = 'PARLEY_TEST_STORES_DECIDED';
const NATIVE: StoreChoices = { redis: { from: 'native' }, eventstore: { from: 'native' }, kafka: { from: 'native' } };

let choices: Promise<StoreChoices> | undefined;

/** @throws Error in mode `containers`, when Docker does not answer or lacks the image */
export async function chooseStore(kind: StoreKind): Promise<StoreChoice> {
  const decided = process.env[DECIDED];
  choices ??= decided === undefined ? decide() : Promise.resolve(choicesSchema.parse(JSON.parse(decided)));
  return (await choices)[kind];
}

/** Chooses for this process and its children; prints a line for each store. */
export async function decideForAll(say: (line: string) => void): Promise<void> {
  process.env[DECIDED] ??= JSON.stringify(await decide(say));
}

async function decide(say: (line: string) => void = () => undefined): Promise<StoreChoices> {
  const mode = modeOf(process.env);
  const answer = mode === 'native' ? { images: undefined, why: 'PARLEY_TEST_STORES' } : await askDocker();
  if (mode === 'containers' && answer.images === undefined)
    throw new Error(`PARLEY_TEST_STORES=containers: ${answer.why}`);
  const { images } = answer;
  if (images !== undefined) keepReaperOut(await images(REAPER_IMAGE));
  const found: Partial<StoreChoices> = {};
  for (const kind of STORE_KINDS) {
    const wanted = candidatesOf(kind);
    const image = images === undefined ? undefined : await firstThere(wanted, images);
    if (mode === 'containers' && image === undefined) {
      throw new Error(
        `PARLEY_TEST_STORES=containers: Docker has no image ${wanted.join(', ')}: npm run images, or docker pull`,
      );
    }
    found[kind] = image === undefined ? { from: 'native' } : { from: 'container', image };
    const why = images === undefined ? answer.why : `Docker has no image ${wanted.join(', ')}`;
    say(`${kind}: ${image === undefined ? `native process (${why})` : `container of ${image}`}`);
  }
  return { ...NATIVE, ...found };
}

/** Benchmarks always measure native processes: only the test runner looks for containers. */
export function modeOf({ PARLEY_TEST_STORES, VITEST }: NodeJS.ProcessEnv): Mode {
  if (PARLEY_TEST_STORES === undefined || PARLEY_TEST_STORES === '') return VITEST === undefined ? 'native' : 'auto';
  const mode = modeSchema.safeParse(PARLEY_TEST_STORES);
  if (mode.success) return mode.data;
  throw new Error(`PARLEY_TEST_STORES is one of ${modeSchema.options.join(', ')}, not ${PARLEY_TEST_STORES}`);
}

type IsThere = (image: string) => Promise<boolean>;

async function askDocker(): Promise<{ readonly images: IsThere | undefined; readonly why: string }> {
  if (!mayHaveDocker()) return { images: undefined, why: 'there is no Docker' };
  // Takes a second to load.
  const { getContainerRuntimeClient, ImageName } = await import('testcontainers');
  try {
    const client = await getContainerRuntimeClient();
    return { images: (image) => client.image.exists(ImageName.fromString(image)), why: '' };
  } catch (error) {
    return {
      images: undefined,
      why: `Docker does not answer: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
}

/** Whether any sign exists by which testcontainers finds Docker. */
function mayHaveDocker(): boolean {
  const { DOCKER_HOST, TESTCONTAINERS_HOST_OVERRIDE, XDG_RUNTIME_DIR } = process.env;
  const home = homedir();
  const signs = [
    '/var/run/docker.sock',
    `/run/user/${process.getuid?.() ?? 0}/docker.sock`,
    ...(XDG_RUNTIME_DIR === undefined ? [] : [join(XDG_RUNTIME_DIR, 'docker.sock')]),
    ...['.testcontainers.properties', '.docker/run/docker.sock', '.docker/desktop/docker.sock'].map((path) =>
      join(home, path),
    ),
  ];
  return (
    DOCKER_HOST !== undefined ||
    TESTCONTAINERS_HOST_OVERRIDE !== undefined ||
    process.platform === 'win32' ||
    signs.some(existsSync)
  );
}

async function firstThere(images: readonly string[], isThere: IsThere): Promise<string | undefined> {
  for (const image of images) if (await isThere(image)) return image;
  return undefined;
}

/** Disables the container that removes the others after a crash where its image is missing. */
function keepReaperOut(hasImage: boolean): void {
  if (!hasImage) process.env['TESTCONTAINERS_RYUK_DISABLED'] ??= 'true';
}
