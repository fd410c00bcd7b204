import { open, stat } from 'node:fs/promises';

import { fileProblem } from '../errors.ts';
import { BadInput, FORMATS_READ, type ImportFormat, type ImportSource } from './import.model.ts';
import { conversationFilesOf, openFolder, openZip, type ExportFiles } from './export-files.ts';
import { detectLines, fileOf, openLines } from './lines-source.ts';
import { openSlack } from './slack-source.ts';

interface OpenedSource {
  readonly format: ImportFormat;
  readonly source: ImportSource;
}

/**
 * Opens the source of an import: an export of Slack or ChatGPT, as .zip or folder, or a file of JSON.
 *
 * @param format null to detect it
 * @throws BadInput if the source does not exist, or its format is unknown
 */
export async function openSource(path: string, format: ImportFormat | null): Promise<OpenedSource> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw new BadInput(`${path} cannot be read: ${fileProblem(error)}`);
  });
  if (found.isDirectory()) return openExport(() => openFolder(path), path, format);
  // A source is read more than once, and reading a device may never end.
  if (!found.isFile()) throw new BadInput(`${path} is neither a regular file nor a folder`);
  const head = await headOf(path);
  if (head.startsWith('1f8b')) throw new BadInput(`${path} is compressed with gzip: unpack it first`);
  if (format === 'slack' || /\.zip$/i.test(path) || head === ZIP) return openExport(() => openZip(path), path, format);
  const file = await fileOf(path);
  const detected = format ?? (await detectLines(file));
  if (detected === null) throw new BadInput(`the format of ${path} is unknown; ${FORMATS_READ}`);
  return { format: detected, source: await openLines([file], detected) };
}

const ZIP = '504b0304';

/** The first four bytes, in hexadecimal. */
async function headOf(path: string): Promise<string> {
  await using file = await open(path);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0);
  return buffer.toString('hex', 0, bytesRead);
}

async function openExport(
  openFiles: () => Promise<ExportFiles>,
  path: string,
  format: ImportFormat | null,
): Promise<OpenedSource> {
  const files = await openFiles();
  try {
    const conversations = await conversationFilesOf(files);
    const detected = conversations.length > 0 ? 'chatgpt' : 'slack';
    if (format !== null && format !== detected)
      throw new BadInput(`${path} is an export of ${detected}, not ${format}`);
    if (detected === 'slack') return { format: detected, source: await openSlack(openFiles) };
    const sources = conversations.map(({ name, bytes }) => ({
      name,
      size: bytes,
      read: () => streamOf(openFiles, name),
    }));
    return { format: detected, source: await openLines(sources, detected) };
  } finally {
    files.close();
  }
}

/** Opens the export anew, because it may be read long after it was listed. */
async function streamOf(openFiles: () => Promise<ExportFiles>, name: string): Promise<AsyncIterable<Buffer>> {
  const files = await openFiles();
  const chunks = await files.stream(name).catch((error: unknown) => {
    files.close();
    throw error;
  });
  return (async function* read() {
    try {
      yield* chunks;
    } finally {
      files.close();
    }
  })();
}
