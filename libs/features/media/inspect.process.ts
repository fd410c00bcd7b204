/**
 * The process that opens files from outside: it finds out their type, measures them, and writes previews and texts. Its
 * parent limits its memory and time, and replaces it when it dies. It gets no environment, so it holds no secrets.
 */
import { fileTypeFromFile } from 'file-type';

import { InspectionError, NOT_MEASURED } from './file-inspection.ts';
import type { Inspected, InspectionReply, InspectionRequest, InspectionTask } from './file-inspection.ts';
import { fileTypeOf, hasPreview, withoutVideo } from './file-types.ts';
import { startOf, writeText, writeTextPreview } from './inspect.text.ts';
import type { FileType } from './media.ts';

const START_BYTES = 4_096;
/** Memory of WebAssembly never shrinks: a process that holds more than this is replaced. */
const MAX_IDLE_BYTES = 192 * 1024 * 1024;
/** A process is replaced after so much processor time, long before its limit ends it: that would fail files. */
const MAX_PROCESSOR_SECONDS = 120;

const TOO_MUCH_MEMORY = 'processing it takes too much memory';

process.on('message', (task: InspectionTask) => {
  void replyTo(task).then((reply) => process.send?.(reply));
});
process.send?.('started');
// The parent has died.
process.on('disconnect', () => process.exit());

async function replyTo({ id, ...request }: InspectionTask): Promise<InspectionReply> {
  let type: FileType | null = null;
  try {
    type = fileTypeOf(await fileTypeFromFile(request.path), await startOf(request.path, START_BYTES));
    const found = await inspected(type, request);
    return { id, answer: { ok: true, ...found }, isLast: isWornOut() };
  } catch (error) {
    const isCertain = error instanceof InspectionError;
    const reason = isCertain ? error.message : reasonOf(error);
    // Libraries in WebAssembly stay broken after they lacked memory. The library of images does not.
    const isLast = !isCertain && type?.resourceType !== 'image';
    return { id, answer: { ok: false, reason, type, isCertain }, isLast };
  }
}

function isWornOut(): boolean {
  const { user, system } = process.cpuUsage();
  return process.memoryUsage.rss() > MAX_IDLE_BYTES || (user + system) / 1e6 > MAX_PROCESSOR_SECONDS;
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

function reasonOf(error: unknown): string {
  // WebAssembly throws these when its memory cannot grow.
  if (error instanceof RangeError || (error instanceof Error && error.name === 'RuntimeError')) return TOO_MUCH_MEMORY;
  return error instanceof Error && /memory|alloc/i.test(error.message) ? TOO_MUCH_MEMORY : 'the file is damaged';
}
