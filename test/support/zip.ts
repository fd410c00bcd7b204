/** Makes .zip files for tests: valid ones, and ones whose headers are wrong. */
import { crc32, deflateRawSync } from 'node:zlib';

export interface ZipEntry {
  /** Bytes are written without the flag that says UTF-8. */
  readonly name: string | Buffer;
  readonly content: string | Buffer;
  /** The size that the archive declares, if it differs. */
  readonly saysBytes?: number;
  /** Says that a password is needed. */
  readonly encrypted?: boolean;
}

export function zipOf(entries: readonly ZipEntry[]): Buffer {
  const files: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, content, saysBytes, encrypted = false } of entries) {
    const bytes = Buffer.from(content);
    const packed = deflateRawSync(bytes);
    const file = Buffer.from(name);
    // Version, flags (names are UTF-8), method, time and date, checksum, sizes, lengths of name and extra.
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE((typeof name === 'string' ? 0x800 : 0) | Number(encrypted), 2);
    common.writeUInt16LE(8, 4);
    common.writeUInt32LE(crc32(bytes), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(saysBytes ?? bytes.length, 18);
    common.writeUInt16LE(file.length, 22);
    const header = Buffer.concat([signature(0x04034b50), common, file]);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(offset, 10);
    directory.push(signature(0x02014b50), Buffer.from([20, 0]), common, place, file);
    files.push(header, packed);
    offset += header.length + packed.length;
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(entries.length, 4);
  end.writeUInt16LE(entries.length, 6);
  end.writeUInt32LE(central.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...files, central, signature(0x06054b50), end]);
}

function signature(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
