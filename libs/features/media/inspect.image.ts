import sharp, { type Sharp } from 'sharp';

import { type InspectedPreview, InspectionError, type Measures, NOT_MEASURED } from './file-inspection.ts';

/** Longest side of a preview. */
export const PREVIEW_PIXELS = 1_024;
const MAX_PIXELS = 25_000_000;
const TOO_MANY_PIXELS = 'the image has more than 25 million pixels';
const LOADERS = ['Jpeg', 'Png', 'Webp', 'Nsgif', 'Heif', 'Tiff'].map((format) => `VipsForeignLoad${format}File`);

sharp.cache(false);
// Files are inspected in parallel by several processes.
sharp.concurrency(1);
// No library but this one opens a file, whatever it claims to be: none for SVG, PDF, ImageMagick.
sharp.block({ operation: ['VipsForeignLoad'] });
sharp.unblock({ operation: LOADERS });

/** @throws InspectionError; other errors for damaged files */
export async function inspectImage(path: string, previewPath: string) {
  const image = sharp(path, { limitInputPixels: MAX_PIXELS, failOn: 'truncated' });
  try {
    const { width, height, autoOrient } = await image.metadata();
    if (width * height > MAX_PIXELS) throw new InspectionError(TOO_MANY_PIXELS);
    const preview = await writePreview(image.autoOrient(), previewPath);
    const measures: Measures = { ...NOT_MEASURED, width: autoOrient.width, height: autoOrient.height };
    return { measures, preview };
  } catch (error) {
    const isTooLarge = error instanceof Error && error.message.includes('exceeds pixel limit');
    throw isTooLarge ? new InspectionError(TOO_MANY_PIXELS) : error;
  }
}

/** @param pixels RGBA */
export function writePixels(pixels: Uint8Array, width: number, height: number, path: string) {
  return writePreview(sharp(pixels, { raw: { width, height, channels: 4 } }), path);
}

async function writePreview(image: Sharp, path: string): Promise<InspectedPreview> {
  const { width, height } = await image
    .resize({ width: PREVIEW_PIXELS, height: PREVIEW_PIXELS, fit: 'inside', withoutEnlargement: true })
    .webp({ quality: 80 })
    .toFile(path);
  return { mimeType: 'image/webp', width, height };
}
