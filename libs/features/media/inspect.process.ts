/** The bounded process that opens media files: it finds out their type, measures them, and writes previews and texts. */
import { fileTypeFromFile } from 'file-type';

import { lacksMemory, serveTasks, TaskError } from '#libs/platform/bounded/index.ts';

import { type Inspected, InspectionError, type InspectionRequest, NOT_MEASURED } from './file-inspection.ts';
import { fileTypeOf, hasPreview, withoutVideo } from './file-types.ts';
import { startOf, writeText, writeTextPreview } from './inspect.text.ts';
import type { FileType } from './media.ts';

const START_BYTES = 4_096;

serveTasks(inspect, { maxIdleBytes: 192 * 1024 * 1024 });

async function inspect(request: InspectionRequest): Promise<Inspected> {
  let type: FileType | null = null;
  try {
    type = fileTypeOf(await fileTypeFromFile(request.path), await startOf(request.path, START_BYTES));
    return await inspected(type, request);
  } catch (error) {
    if (error instanceof InspectionError) throw new TaskError('refused', error.message, { detail: type });
    const kind = lacksMemory(error) ? 'memory' : 'failed';
    // Libraries in WebAssembly stay broken after they lacked memory. The library of images does not.
    throw new TaskError(kind, '', { detail: type, isLast: type?.resourceType !== 'image' });
  }
}

async function inspected(type: FileType, { path, previewPath, textPath }: InspectionRequest): Promise<Inspected> {
  const found = { type, ...NOT_MEASURED, preview: null, text: null };
  if (type.format === 'svg') throw new InspectionError('SVG images are refused');
  if (hasPreview(type)) {
    const { inspectImage } = await import('./inspect.image.ts');
    const { measures, preview } = await inspectImage(path, previewPath);
    return { ...found, ...measures, preview };
  }
  if (type.mimeType === 'application/pdf') {
    const { inspectPdf, writePdfText } = await import('./inspect.pdf.ts');
    const { measures, preview } = await inspectPdf(path, previewPath);
    return { ...found, ...measures, preview, text: textPath === null ? null : await writePdfText(path, textPath) };
  }
  if (type.resourceType === 'audio' || type.resourceType === 'video') {
    const { inspectRecording } = await import('./inspect.recording.ts');
    const { hasVideo, ...measures } = await inspectRecording(path);
    return { ...found, ...measures, type: hasVideo ? type : withoutVideo(type) };
  }
  const isHtml = type.mimeType === 'text/html';
  if (!isHtml && type.mimeType !== 'text/plain') return found;
  const preview = isHtml ? null : await writeTextPreview(path, previewPath);
  return { ...found, preview, text: textPath === null ? null : await writeText(path, textPath, isHtml) };
}
