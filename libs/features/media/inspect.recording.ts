import { open } from 'node:fs/promises';

import mediaInfo from 'mediainfo.js';

import { InspectionError, type Measures, NOT_MEASURED } from './file-inspection.ts';

const info = await mediaInfo({ chunkSize: 64 * 1024 });

export interface Recording extends Measures {
  readonly hasVideo: boolean;
}

/** The library reads one file after the other. */
let last: Promise<unknown> = Promise.resolve();

/**
 * Duration of audio and video, and the size of video.
 *
 * @throws InspectionError if the file ends before its first track
 */
export function inspectRecording(path: string): Promise<Recording> {
  const recording = last.then(() => read(path));
  last = recording.catch(() => undefined);
  return recording;
}

async function read(path: string): Promise<Recording> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const { media } = await info.analyzeData(size, async (length, offset) => {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset);
      return buffer.subarray(0, bytesRead);
    });
    const tracks = media?.track ?? [];
    const general = tracks.find((track) => track['@type'] === 'General');
    const video = tracks.find((track) => track['@type'] === 'Video');
    const hasTracks = tracks.some((track) => track['@type'] === 'Audio' || track['@type'] === 'Video');
    if (!hasTracks && general?.extra?.['IsTruncated'] === 'Yes') throw new InspectionError('the file is truncated');
    const [width, height] = [measure(video?.Width), measure(video?.Height)];
    const isTurned = Math.abs(Number(video?.Rotation ?? 0)) % 180 === 90;
    const durationMs = measure(Number(general?.Duration ?? 0) * 1_000);
    return {
      ...NOT_MEASURED,
      width: isTurned ? height : width,
      height: isTurned ? width : height,
      durationMs: durationMs === 0 ? null : durationMs,
      hasVideo: video !== undefined,
    };
  } finally {
    await file.close();
    info.reset();
  }
}

/** A whole number from 0, whatever the file states. */
function measure(stated: number | undefined): number {
  const value = Math.round(stated ?? 0);
  return Number.isSafeInteger(value) && value > 0 ? value : 0;
}
