import type { FileType } from './media.ts';

export interface InspectionRequest {
  readonly path: string;
  /** Files that do not exist yet: the preview and the text are written there. */
  readonly previewPath: string;
  /** Null if the text is not wanted. */
  readonly textPath: string | null;
}

/** The text of a PDF, a page or a text file, as documents take it: in UTF-8, at most 5 MiB. */
export interface InspectedText {
  readonly contentType: 'text/markdown' | 'text/html' | 'text/plain';
  readonly title: string | null;
  /** The file has more text. */
  readonly truncated: boolean;
}

export interface Measures {
  /** As it is shown: of an image or a video in pixels, of the first page of a PDF in points; 0 if not measured. */
  readonly width: number;
  readonly height: number;
  /** Of a PDF; else null. */
  readonly pages: number | null;
  /** Of audio and video; else null. */
  readonly durationMs: number | null;
}

export interface InspectedPreview {
  readonly mimeType: 'image/webp' | 'text/plain';
  /** Of an image, in pixels; else 0. */
  readonly width: number;
  readonly height: number;
}

export interface Inspected extends Measures {
  readonly type: FileType;
  /** The file at `previewPath`, if it was written. */
  readonly preview: InspectedPreview | null;
  /** The file at `textPath`, if it was written. */
  readonly text: InspectedText | null;
}

/** The file cannot be processed, and never will be. The message is a sentence without a full stop, for users. */
export class InspectionError extends Error {
  override readonly name = 'InspectionError';
  /** Null if it was not found out. */
  readonly type: FileType | null;

  constructor(message: string, type: FileType | null = null) {
    super(message);
    this.type = type;
  }
}

export const NOT_MEASURED: Measures = { width: 0, height: 0, pages: null, durationMs: null };
