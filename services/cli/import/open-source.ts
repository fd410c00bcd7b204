import { stat } from 'node:fs/promises';

import { BadInput, type ImportFormat, type ImportSource } from './import.model.ts';
import { detectLines, openLines } from './lines-source.ts';
import { openSlackFolder, openSlackZip } from './slack-files.ts';
import { openSlack } from './slack-source.ts';

/**
 * Opens the source of an import: Slack's export, as .zip or folder, or a file of JSON lines.
 *
 * @param format null to detect it
 * @throws BadInput if the source does not exist, or its format is unknown
 */
export async function openSource(
  path: string,
  format: ImportFormat | null,
): Promise<{ readonly format: ImportFormat; readonly source: ImportSource }> {
  const found = await stat(path).catch(() => null);
  if (found === null) throw new BadInput(`${path} cannot be read`);
  if (found.isDirectory()) {
    if (format !== null && format !== 'slack') throw new BadInput(`${path} is a folder; ${format} is a file`);
    return { format: 'slack', source: await openSlack(() => openSlackFolder(path)) };
  }
  // A source is read more than once, and reading a device may never end.
  if (!found.isFile()) throw new BadInput(`${path} is neither a regular file nor a folder`);
  if (format === 'slack' || (format === null && /\.zip$/i.test(path))) {
    return { format: 'slack', source: await openSlack(() => openSlackZip(path)) };
  }
  const detected = format ?? (await detectLines(path));
  if (detected === null) throw new BadInput(`the format of ${path} is unknown; name it with --format`);
  return { format: detected, source: await openLines(path, detected) };
}
