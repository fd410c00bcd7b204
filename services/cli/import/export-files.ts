/** The files of an export of Slack or ChatGPT, in a folder or in the .zip that they provide. */
import { isUtf8 } from 'node:buffer';
import { createReadStream, type Stats } from 'node:fs';
import { readFile, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { openPromise, validateFileName, type Entry, type ZipFile } from 'yauzl';

import { messageOf } from '#libs/kernel/faults.ts';
import { fileProblem } from '../errors.ts';
import { BadInput } from './import.model.ts';

const CONVERSATIONS = /^conversations(-\d+)?\.json$/;
const LIST = /^(?!__MACOSX\/)([^/]+\/)?((channels|groups|mpims|dms)\.json|conversations(-\d+)?\.json)$/;
const MIB = 1024 * 1024;
/** Files are read whole. Slack's files, one for each day of each channel, are far smaller. */
const MAX_FILE_BYTES = 256 * MIB;
/** Limits of one archive, above those of the largest workspaces. */
const MAX_ENTRIES = 1_000_000;
const MAX_UNPACKED_BYTES = 64 * 1024 * MIB;
/** Limit of unpacked size / packed size, far above that of JSON messages. Archives that unpack to `SMALL_BYTES` may exceed it. */
const MAX_RATIO = 200;
const SMALL_BYTES = 16 * MIB;

export interface ExportFiles {
  readonly path: string;
  /** The names of its folders. */
  folders(): Promise<readonly string[]>;
  /** The files of a folder ('' for the export itself); none if it does not exist. */
  list(folder: string): Promise<{ readonly name: string; readonly bytes: number }[]>;
  /** The bytes of a file of any size. @throws BadInput without the name of the file */
  stream(name: string): Promise<AsyncIterable<Buffer>>;
  /** @throws BadInput without the name of the file */
  read(name: string): Promise<string>;
  close(): void;
}

/** @throws BadInput if the folder holds no export */
export async function openFolder(path: string): Promise<ExportFiles> {
  if (!(await readdir(path)).some((name) => LIST.test(name))) throw noExport(path);
  return {
    path,
    stream: (name) => Promise.resolve(createReadStream(join(path, name))),
    async folders() {
      const found = await readdir(path, { withFileTypes: true });
      return found.filter((one) => !one.isFile()).map(({ name }) => name);
    },
    async list(folder) {
      const names = await readdir(join(path, folder)).catch(() => []);
      return Promise.all(
        names.map(async (name) => ({ name, bytes: (await statOf(join(path, folder, name)))?.size ?? 0 })),
      );
    },
    async read(name) {
      const file = join(path, name);
      const found = await stat(file).catch((error: NodeJS.ErrnoException) => {
        throw new BadInput(`cannot be read: ${fileProblem(error)}`);
      });
      // Reading a pipe or a device may block, or never end.
      if (!found.isFile()) throw new BadInput('not a regular file');
      if (found.size > MAX_FILE_BYTES) throw tooLargeFile();
      return readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
        throw new BadInput(`cannot be read: ${fileProblem(error)}`);
      });
    },
    close: () => undefined,
  };
}

const statOf = (path: string): Promise<Stats | null> => stat(path).catch(() => null);

/**
 * Unpacks nothing to the disk, so no entry's name can point outside a folder. An entry that inflates to more than
 * the size in the archive's directory is refused.
 *
 * @throws BadInput if the file is not an archive, holds no export, or exceeds the limits
 */
export async function openZip(path: string): Promise<ExportFiles> {
  const zip = await openPromise(path, { lazyEntries: true, autoClose: false }).catch((error: unknown) => {
    throw new BadInput(`${path} cannot be read as a .zip: ${messageOf(error)}`);
  });
  try {
    const folders = Map.groupBy(await entriesOf(zip, path), ({ folder }) => folder);
    const entryOf = (file: string): Entry => {
      const { folder, name } = placeOf(file);
      const found = folders.get(folder)?.find((one) => one.name === name);
      if (found === undefined) throw new BadInput('is not in the archive');
      return found.entry;
    };
    return {
      path,
      folders: () => Promise.resolve([...folders.keys()].filter((folder) => folder !== '')),
      list: (folder) =>
        Promise.resolve(
          (folders.get(folder) ?? []).map(({ name, entry }) => ({ name, bytes: entry.uncompressedSize })),
        ),
      read: async (file) => readEntry(zip, entryOf(file)),
      stream: (file) => streamOf(zip, entryOf(file)),
      close: () => zip.close(),
    };
  } catch (error) {
    zip.close();
    throw error;
  }
}

interface ExportEntry {
  /** Relative to the export: some programs put its files into one folder. */
  readonly folder: string;
  readonly name: string;
  readonly entry: Entry;
}

function placeOf(name: string): { readonly folder: string; readonly name: string } {
  const slash = name.lastIndexOf('/');
  return { folder: name.slice(0, Math.max(0, slash)), name: name.slice(slash + 1) };
}

async function entriesOf(zip: ZipFile, path: string): Promise<ExportEntry[]> {
  const tooLarge = (): BadInput => new BadInput(`${path} unpacks to more than an export can hold`);
  if (zip.entryCount > MAX_ENTRIES) throw tooLarge();
  const found = new Map<string, Entry>();
  let bytes = 0;
  try {
    for await (const entry of zip.eachEntry()) {
      bytes += entry.uncompressedSize;
      if (bytes > MAX_UNPACKED_BYTES) throw tooLarge();
      // Unpacking programs disagree on which of the two they keep.
      const name = normalName(nameOf(entry));
      if (found.has(name)) throw new BadInput(`${path} has two entries named ${name}`);
      found.set(name, entry);
    }
  } catch (error) {
    throw error instanceof BadInput ? error : new BadInput(`${path} is damaged: ${messageOf(error)}`);
  }
  if (bytes > Math.max(SMALL_BYTES, MAX_RATIO * zip.fileSize)) {
    throw new BadInput(`${path} unpacks to more than ${MAX_RATIO} times its size`);
  }
  const prefix = exportPrefix([...found.keys()], path);
  const own = [...found].filter(([name]) => name.startsWith(prefix));
  return own.map(([name, entry]) => ({ ...placeOf(name.slice(prefix.length)), entry }));
}

const UTF8_FLAG = 0x800;

/** Without the flag a name is cp437 by the standard; many programs write UTF-8 all the same. */
function nameOf({ fileName, fileNameRaw, generalPurposeBitFlag }: Entry): string {
  if ((generalPurposeBitFlag & UTF8_FLAG) !== 0 || !isUtf8(fileNameRaw)) return fileName;
  const name = fileNameRaw.toString().replaceAll('\\', '/');
  const problem = validateFileName(name);
  if (problem !== null) throw new Error(problem);
  return name;
}

/** The name of the unpacked entry: `a/b` for `./a//b`. */
function normalName(name: string): string {
  return name
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/');
}

/** Folder of the export in the archive, with its slash. Two exports are refused, because only one would be imported. */
function exportPrefix(names: readonly string[], path: string): string {
  const lists = Map.groupBy(
    names.filter((name) => LIST.test(name)),
    (name) => name.slice(0, name.lastIndexOf('/') + 1),
  );
  const [prefix] = lists.keys();
  if (prefix === undefined) throw noExport(path);
  if (lists.size > 1) {
    const shown = [...lists.values()].map(([first]) => first).sort();
    throw new BadInput(
      `${path} holds more than one export: ${shown.slice(0, 3).join(', ')}${shown.length > 3 ? ', …' : ''}`,
    );
  }
  return prefix;
}

/** ChatGPT's files of conversations; none if it is Slack's export. */
export async function conversationFilesOf(files: ExportFiles): Promise<{ name: string; bytes: number }[]> {
  const found = await files.list('');
  return found.filter(({ name }) => CONVERSATIONS.test(name)).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** @throws BadInput */
async function streamOf(zip: ZipFile, entry: Entry) {
  if (entry.isEncrypted()) throw new BadInput('is protected by a password: pack the export without one');
  return zip.openReadStreamPromise(entry).catch((error: unknown) => {
    throw new BadInput(`cannot be unpacked: ${messageOf(error)}`);
  });
}

async function readEntry(zip: ZipFile, entry: Entry): Promise<string> {
  if (entry.uncompressedSize > MAX_FILE_BYTES) throw tooLargeFile();
  const bytes = await streamOf(zip, entry);
  try {
    return (await buffer(bytes)).toString();
  } catch (error) {
    // Including: more bytes than the archive's directory states.
    throw new BadInput(`cannot be unpacked: ${messageOf(error)}`);
  }
}

function noExport(path: string): BadInput {
  return new BadInput(
    `${path} holds no export of Slack or ChatGPT: there is no channels.json or conversations.json in it`,
  );
}

function tooLargeFile(): BadInput {
  return new BadInput(`larger than ${MAX_FILE_BYTES / MIB} MiB`);
}
