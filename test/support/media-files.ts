/** Files as users and attackers send them. Those that no tool here can write are recorded in `test/fixtures/media`. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32, constants, deflateSync } from 'node:zlib';

import sharp, { type Sharp } from 'sharp';

import { zipOf } from './zip.ts';

const FIXTURES = join(import.meta.dirname, '../fixtures/media');
const MIB = 1024 * 1024;

const fixture = (name: string): Promise<Buffer> => readFile(join(FIXTURES, name));

/** Expected result of the inspection of a file; absent members are 0 or null. */
export interface Expected {
  readonly mimeType: string;
  readonly format: string;
  readonly resourceType: string;
  readonly width?: number;
  readonly height?: number;
  readonly pages?: number;
  /** Roughly, in milliseconds. */
  readonly durationMs?: number;
  /** Size of the preview, or the text of it. */
  readonly preview?: readonly [number, number] | string;
}

export interface SampleFile {
  readonly name: string;
  make(): Buffer | Promise<Buffer>;
  readonly expected: Expected;
}

/** An arrow up over four colours, so that a preview shows how it was turned. */
function picture(width = 120, height = 80): Sharp {
  const [x, y] = [width / 2, height / 2];
  const colours = ['#c33', '#393', '#33c', '#dd3']
    .map((fill, n) => `<rect x="${(n % 2) * x}" y="${n > 1 ? y : 0}" width="${x}" height="${y}" fill="${fill}"/>`)
    .join('');
  const arrow = `<path d="M${x} 8 L${x + 24} 36 H${x + 9} V${height - 8} H${x - 9} V36 H${x - 24} Z" fill="#fff"/>`;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">${colours}${arrow}</svg>`;
  return sharp(Buffer.from(svg)).flatten({ background: '#000' });
}

const image = (format: string, size: readonly [number, number] = [120, 80], mimeType = `image/${format}`) => ({
  mimeType,
  format,
  resourceType: 'image',
  width: size[0],
  height: size[1],
  preview: size,
});

const text = (preview: string, format = 'txt', mimeType = 'text/plain') => ({
  mimeType,
  format,
  resourceType: 'text',
  preview,
});

const pdf = { mimeType: 'application/pdf', format: 'pdf', resourceType: 'document' };
const audio = (mimeType: string, format: string) => ({ mimeType, format, resourceType: 'audio' });

async function animation(): Promise<Sharp> {
  const frames = await Promise.all([0, 90, 180].map(async (angle) => picture(80, 80).rotate(angle).png().toBuffer()));
  return sharp(frames, { join: { animated: true } });
}

const GERMAN = 'Gr\u00fc\u00dfe aus M\u00fcnchen: 5 \u20ac\n';

/** Of more than 20 kinds. */
export const SAMPLE_FILES: readonly SampleFile[] = [
  { name: 'photo.jpg', make: () => picture().jpeg().toBuffer(), expected: image('jpg', [120, 80], 'image/jpeg') },
  {
    name: 'turned.jpg',
    // The camera was turned: the picture is shown upright, and is 80 pixels wide.
    make: async () => {
      const stored = await picture(80, 120).rotate(270).png().toBuffer();
      return sharp(stored).withMetadata({ orientation: 6 }).jpeg().toBuffer();
    },
    expected: image('jpg', [80, 120], 'image/jpeg'),
  },
  {
    name: 'cmyk.jpg',
    make: () => picture().toColourspace('cmyk').jpeg().toBuffer(),
    expected: image('jpg', [120, 80], 'image/jpeg'),
  },
  {
    name: 'progressive.jpg',
    make: () => picture(2400, 1600).jpeg({ progressive: true }).toBuffer(),
    expected: { ...image('jpg', [2400, 1600], 'image/jpeg'), preview: [1024, 683] },
  },
  { name: 'deep.png', make: () => picture().toColourspace('rgb16').png().toBuffer(), expected: image('png') },
  {
    name: 'transparent.png',
    make: async () =>
      sharp(await picture().png().toBuffer())
        .ensureAlpha(0.5)
        .png({ palette: true })
        .toBuffer(),
    expected: image('png'),
  },
  { name: 'still.gif', make: () => picture().gif().toBuffer(), expected: image('gif') },
  { name: 'animated.gif', make: async () => (await animation()).gif().toBuffer(), expected: image('gif', [80, 80]) },
  { name: 'animated.webp', make: async () => (await animation()).webp().toBuffer(), expected: image('webp', [80, 80]) },
  { name: 'still.webp', make: () => picture().webp({ lossless: true }).toBuffer(), expected: image('webp') },
  { name: 'still.avif', make: () => picture().avif({ effort: 0 }).toBuffer(), expected: image('avif') },
  {
    name: 'scan.tiff',
    make: () => picture().tiff({ compression: 'lzw' }).toBuffer(),
    expected: image('tif', [120, 80], 'image/tiff'),
  },
  {
    name: 'drawing.bmp',
    make: async () => bmpOf(await picture(8, 8).raw().toBuffer(), 8),
    expected: { mimeType: 'image/bmp', format: 'bmp', resourceType: 'image' },
  },
  {
    name: 'book.pdf',
    make: () => pdfOf(Array.from({ length: 200 }, (_, page) => textOn(`Page ${page + 1} of 200`))),
    expected: { ...pdf, width: 300, height: 200, pages: 200, preview: [1024, 683] },
  },
  {
    name: 'turned.pdf',
    make: () => pdfOf([textOn('Turned')], '/Rotate 90'),
    expected: { ...pdf, width: 200, height: 300, pages: 1, preview: [683, 1024] },
  },
  { name: 'encrypted.pdf', make: () => fixture('encrypted.pdf'), expected: pdf },
  { name: 'tone.mp3', make: () => fixture('tone.mp3'), expected: { ...audio('audio/mpeg', 'mp3'), durationMs: 1_000 } },
  { name: 'tone.ogg', make: () => fixture('tone.ogg'), expected: { ...audio('audio/ogg', 'ogg'), durationMs: 1_000 } },
  { name: 'tone.wav', make: () => wavOf(8_000), expected: { ...audio('audio/wav', 'wav'), durationMs: 1_000 } },
  {
    name: 'turned.mp4',
    make: () => fixture('turned.mp4'),
    expected: {
      mimeType: 'video/mp4',
      format: 'mp4',
      resourceType: 'video',
      width: 72,
      height: 128,
      durationMs: 1_000,
    },
  },
  {
    name: 'video.webm',
    make: () => fixture('video.webm'),
    expected: {
      mimeType: 'video/webm',
      format: 'webm',
      resourceType: 'video',
      width: 128,
      height: 72,
      durationMs: 1_000,
    },
  },
  {
    name: 'audio-only.webm',
    make: () => fixture('audio-only.webm'),
    expected: { ...audio('audio/webm', 'webm'), durationMs: 1_000 },
  },
  {
    name: 'archive.zip',
    make: () => zipOf([{ name: 'a.txt', content: 'a' }]),
    expected: { mimeType: 'application/zip', format: 'zip', resourceType: 'archive' },
  },
  { name: 'utf8.txt', make: () => Buffer.from(GERMAN), expected: text(GERMAN) },
  { name: 'utf16.txt', make: () => Buffer.from(`\ufeff${GERMAN}`, 'utf16le'), expected: text(GERMAN) },
  {
    name: 'windows.txt',
    make: () => Buffer.from(GERMAN.replace('\u20ac', '\u0080'), 'latin1'),
    expected: text(GERMAN),
  },
  {
    name: 'page.html',
    make: () => Buffer.from(`<!doctype html><meta charset="utf-8"><title>Page</title><p>${GERMAN}`),
    expected: { mimeType: 'text/html', format: 'html', resourceType: 'text' },
  },
  {
    name: 'unknown.bin',
    make: () => Buffer.from([0, 1, 2, 3, 4, 5, 6, 7]),
    expected: { mimeType: 'application/octet-stream', format: 'bin', resourceType: 'other' },
  },
];

export interface HostileFile {
  readonly name: string;
  make(): Buffer | Promise<Buffer>;
  /** Null if it is processed. */
  readonly failure: RegExp | null;
}

const DAMAGED = /^the file is damaged$/;
const TOO_MUCH = /^processing it takes too much memory/;

/** Without those that take time: see `spinningPdf`. */
export const HOSTILE_FILES: readonly HostileFile[] = [
  { name: 'a PNG of 30,000 x 30,000 pixels', make: () => hugePng(), failure: /^the image has more than 25 million/ },
  { name: 'an SVG with entities', make: () => Buffer.from(LAUGHS), failure: /^SVG images are refused$/ },
  { name: 'a PDF that is none', make: () => Buffer.from('%PDF-1.7 nonsense'), failure: DAMAGED },
  { name: 'a JPEG that is cut off', make: async () => (await noise()).subarray(0, 20_000), failure: DAMAGED },
  { name: 'a GIF that is JavaScript too', make: () => polyglot(), failure: null },
  {
    name: 'a truncated video',
    make: async () => (await fixture('turned.mp4')).subarray(0, 1_500),
    failure: /truncated/,
  },
  { name: 'a PDF whose stream has 2 GiB', make: () => pdfBomb(), failure: TOO_MUCH },
  { name: 'a PDF of forms in forms', make: () => pdfOfForms(), failure: TOO_MUCH },
  { name: 'a GIF of a million frames', make: () => endlessGif(1_000_000), failure: null },
  { name: 'a PNG with 200 MiB of metadata', make: () => pngWithMetadata(200 * MIB), failure: null },
  { name: 'a JPEG with 90 MiB of metadata', make: () => jpegWithMetadata(90 * MIB), failure: TOO_MUCH },
];

const noise = (): Promise<Buffer> =>
  sharp({
    create: {
      width: 600,
      height: 600,
      channels: 3,
      background: '#000',
      noise: { type: 'gaussian', mean: 128, sigma: 60 },
    },
  })
    .jpeg()
    .toBuffer();

const LAUGHS = `<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]>
<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><text>&b;&c;</text></svg>`;

/** Its width is the start of a comment, which hides the rest of the image from scripts. */
function polyglot(): Buffer {
  const header = 'GIF89a/*\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff';
  const frame = ',\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00';
  return Buffer.from(`${header}${frame};*/=1;alert(document.domain)`, 'latin1');
}

function endlessGif(frames: number): Buffer {
  const header = Buffer.from('GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff', 'latin1');
  const frame = Buffer.from(',\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00', 'latin1');
  return Buffer.concat([header, Buffer.alloc(frames * frame.length, frame)]);
}

function hugePng(): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(30_000, 0);
  header.writeUInt32BE(30_000, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const chunks = [
    pngChunk('IHDR', header),
    pngChunk('IDAT', deflateSync(Buffer.alloc(MIB))),
    pngChunk('IEND', Buffer.alloc(0)),
  ];
  return Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]), ...chunks]);
}

async function pngWithMetadata(bytes: number): Promise<Buffer> {
  const png = await picture().png().toBuffer();
  const packed = Buffer.concat([Buffer.from('Comment\0\0'), deflated(bytes)]);
  // Behind the signature and the header.
  return Buffer.concat([png.subarray(0, 33), pngChunk('zTXt', packed), png.subarray(33)]);
}

async function jpegWithMetadata(bytes: number): Promise<Buffer> {
  const jpeg = await picture().jpeg().toBuffer();
  const segment = Buffer.alloc(65_537, 'x');
  segment.set([0xff, 0xe2, 0xff, 0xff]);
  const segments = Buffer.alloc(Math.floor(bytes / segment.length) * segment.length, segment);
  return Buffer.concat([jpeg.subarray(0, 2), segments, jpeg.subarray(2)]);
}

function pngChunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  const [length, checksum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  checksum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, checksum]);
}

/** Blanks, compressed: one block, many times. The checksum is wrong, which no reader minds. */
function deflated(bytes: number): Buffer {
  const block = deflateSync(Buffer.alloc(MIB, ' '), { finishFlush: constants.Z_FULL_FLUSH });
  const count = Math.ceil(bytes / MIB);
  return Buffer.concat([
    block.subarray(0, 2),
    Buffer.alloc((block.length - 2) * count, block.subarray(2)),
    Buffer.from([3, 0, 0, 0, 0, 0]),
  ]);
}

function pdfBomb(): Buffer {
  return pdfOf([{ filter: '/FlateDecode', content: deflated(2_048 * MIB) }]);
}

/** A few KiB whose only page has that many MiB: compressed, and then compressed again. */
export function nestedPdfBomb(mib: number): Buffer {
  const content = deflateSync(deflated(mib * MIB), { level: 9 });
  return pdfOf([{ filter: '[/FlateDecode /FlateDecode]', content }]);
}

/** Its colours are computed for each pixel, in ten thousand steps. */
export function spinningPdf(): Buffer {
  const steps = `{ add ${'sin cos '.repeat(5_000)} dup dup }`;
  const colours = '/FunctionType 4 /Domain [0 300 0 200] /Range [0 1 0 1 0 1]';
  const shading = '/ShadingType 1 /ColorSpace /DeviceRGB /Domain [0 300 0 200] /Function 4 0 R';
  const objects = `4 0 obj << ${colours} /Length ${steps.length} >> stream\n${steps}\nendstream endobj\n`;
  return pdfOf([{ content: '/S0 sh', resources: `/Shading << /S0 << ${shading} >> >>` }], '', objects);
}

/** Forms that draw each other ten times each, in twelve levels. */
function pdfOfForms(): Buffer {
  const form = (id: number, content: string, resources = ''): string =>
    `${id} 0 obj << /Type /XObject /Subtype /Form /BBox [0 0 300 200] ${resources} /Length ${content.length} >> stream\n${content}\nendstream endobj\n`;
  const levels = Array.from({ length: 12 }, (_, level) =>
    form(20 + level, '/F Do '.repeat(10), `/Resources << /XObject << /F ${21 + level} 0 R >> >>`),
  );
  const objects = [...levels, form(32, '0 0 9 9 re f')].join('');
  return pdfOf([{ content: '/F Do', resources: '/XObject << /F 20 0 R >>' }], '', objects);
}

interface PdfPage {
  readonly content: string | Buffer;
  readonly filter?: string;
  readonly resources?: string;
}

const textOn = (words: string): PdfPage => ({ content: `BT /F1 24 Tf 40 90 Td (${words}) Tj ET` });

/** Pages of 300 x 200 points. Objects from 20,000 on are theirs. Readers find the objects without a table of them. */
function pdfOf(pages: readonly PdfPage[], attributes = '', objects = ''): Buffer {
  const first = 20_000;
  const kids = pages.map((_, index) => `${first + 2 * index} 0 R`).join(' ');
  const parts: Buffer[] = [
    Buffer.from(`%PDF-1.7\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj
2 0 obj << /Type /Pages /Kids [${kids}] /Count ${pages.length} /MediaBox [0 0 300 200] ${attributes} >> endobj
3 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> endobj\n${objects}`),
  ];
  for (const [index, { content, filter, resources = '/Font << /F1 3 0 R >>' }] of pages.entries()) {
    const [page, stream] = [first + 2 * index, first + 2 * index + 1];
    const body = Buffer.from(content);
    const filters = filter === undefined ? '' : `/Filter ${filter}`;
    parts.push(
      Buffer.from(`${page} 0 obj << /Type /Page /Parent 2 0 R /Contents ${stream} 0 R /Resources << ${resources} >> >> endobj
${stream} 0 obj << /Length ${body.length} ${filters} >> stream\n`),
      body,
      Buffer.from('\nendstream endobj\n'),
    );
  }
  return Buffer.concat([...parts, Buffer.from('trailer << /Root 1 0 R >>\n%%EOF\n')]);
}

/** One second of silence, 8 bits. */
function wavOf(samples: number): Buffer {
  const header = Buffer.alloc(44);
  header.write('RIFF');
  header.writeUInt32LE(36 + samples, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(8_000, 24);
  header.writeUInt32LE(8_000, 28);
  header.writeUInt16LE(1, 32);
  header.writeUInt16LE(8, 34);
  header.write('data', 36);
  header.writeUInt32LE(samples, 40);
  return Buffer.concat([header, Buffer.alloc(samples, 128)]);
}

/** @param pixels three bytes each */
function bmpOf(pixels: Buffer, width: number): Buffer {
  const header = Buffer.alloc(54);
  header.write('BM');
  header.writeUInt32LE(54 + pixels.length, 2);
  header.writeUInt32LE(54, 10);
  header.writeUInt32LE(40, 14);
  header.writeInt32LE(width, 18);
  header.writeInt32LE(pixels.length / 3 / width, 22);
  header.writeUInt16LE(1, 26);
  header.writeUInt16LE(24, 28);
  return Buffer.concat([header, pixels]);
}
