/** The page of docs/your-users.md as its reader makes it: its commands, its three files, and the bundle. */
import { execFile, spawn } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

import { freePort } from '#infra/private-redis/free-port.ts';

import { type InstalledClient, installClient } from './client-package.ts';
import { eventually } from './eventually.ts';
import { type ParleyProcess, startParleyProcess } from './parley-process.ts';

const root = join(import.meta.dirname, '../..');
const DOCUMENT = 'docs/your-users.md';

export interface ChatPage {
  readonly parley: ParleyProcess;
  /** What the commands of the document made. */
  readonly ids: Readonly<Record<'ADA' | 'AGENT' | 'CHANNEL', string>>;
  /** Of the page, as a user of the shop, through another address of Parley if one is given. */
  urlFor(user: string, parleyUrl?: string): string;
  /** What the backend answers. */
  token(user: string): Promise<Response>;
  stop(): Promise<void>;
}

/** @param env of Parley */
export async function startChatPage(env: Record<string, string> = {}): Promise<ChatPage> {
  const port = await freePort();
  const origin = `http://localhost:${port}`;
  const parley = await startParleyProcess({ env: { CORS_ORIGINS: origin, ...env } });
  const client = await installClient();
  let backend: ReturnType<typeof spawn> | undefined;
  const stop = async (): Promise<void> => {
    backend?.kill();
    await Promise.all([parley.stop(), client.remove()]);
  };
  try {
    await parley.ready();
    const ids = await prepare(client, parley);
    const { PATH = '' } = process.env;
    backend = spawn(process.execPath, ['server.mjs'], {
      cwd: client.folder,
      env: { PATH, PORT: String(port) },
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const token = (user: string) => fetch(`${origin}/token?user=${user}`);
    await eventually(async () => (await token('42')).ok);
    const urlFor = (user: string, parleyUrl = parley.baseUrl): string =>
      `${origin}/?${String(new URLSearchParams({ user, parley: parleyUrl, channel: ids.CHANNEL }))}`;
    return { parley, ids, urlFor, token, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Follows the document: runs its first block of commands, saves its files, and bundles the page as its last block does. */
async function prepare({ folder }: InstalledClient, parley: ParleyProcess): Promise<ChatPage['ids']> {
  const text = await readFile(join(root, DOCUMENT), 'utf8');
  const block = (language: string, index = 0): string => {
    const found = [...text.matchAll(new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``, 'g'))][index]?.[1];
    if (found === undefined) throw new Error(`${DOCUMENT} has no block ${index} of ${language}`);
    return found;
  };
  // What the reader installs comes from our own installation.
  await symlink(join(root, 'node_modules'), join(dirname(folder), 'node_modules'));
  await mkdir(join(folder, 'public'));
  await writeFile(join(folder, 'server.mjs'), block('js'));
  await writeFile(join(folder, 'chat.jsx'), block('jsx'));
  await writeFile(join(folder, 'public/index.html'), block('html'));
  await writeFile(join(folder, 'public/chat.css'), block('css'));
  const bundling = /^npx esbuild (.*)$/m.exec(block('sh', 1))?.[1]?.split(' ') ?? [];
  await promisify(execFile)(join(root, 'node_modules/.bin/esbuild'), bundling, { cwd: folder });

  const npx = `npx() { shift; "${process.execPath}" "${root}/services/cli/main.ts" "$@"; }\n`;
  const commands = block('sh').replaceAll('http://127.0.0.1:8080', parley.baseUrl);
  const shown = '\nfor name in ADA AGENT CHANNEL; do echo "$name ${!name}" >&3; done\n';
  const { PATH = '', HOME = '' } = process.env;
  const env = { PATH: `${dirname(process.execPath)}:${PATH}`, HOME, DATA_DIR: parley.dataDir };
  const script = `set -e\nexec 3>&1 >/dev/null\n${npx}${commands}${shown}`;
  const { stdout } = await promisify(execFile)('bash', ['-uc', script], { cwd: folder, env });
  return Object.fromEntries(
    stdout
      .trim()
      .split('\n')
      .map((line) => line.split(' ')),
  ) as ChatPage['ids'];
}
