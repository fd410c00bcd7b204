/** The results of reading pages and documents. Plain data: it crosses processes, and is the same for the same input. */
import type { EdgeToLearn, NodeToLearn } from '#libs/features/knowledge/index.ts';

/** JSON without prototypes of its own: keys such as `__proto__` are removed where it is parsed. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

export interface Link {
  /** Absolute http or https URL, without fragment. */
  readonly url: string;
  readonly text: string;
}

/** Data that a page states for machines. At most 128 KiB as JSON. */
export interface StructuredData {
  /** Objects of JSON-LD: arrays and `@graph` are flattened. */
  readonly jsonLd: readonly JsonObject[];
  /** Items in the form of JSON-LD: `@type`, `@id`, and their properties. */
  readonly microdata: readonly JsonObject[];
  /** Contents of `<meta property="og:…">` and the like, by property. */
  readonly openGraph: { readonly [property: string]: string };
  /** Links of the readable text, in its order. */
  readonly links: readonly Link[];
}

export interface Page {
  /** Name of the encoding that the bytes were read with, as in the Encoding Standard. */
  readonly charset: string;
  readonly title: string | null;
  readonly description: string | null;
  /** BCP 47, as the page declares it. */
  readonly language: string | null;
  readonly icon: string | null;
  readonly canonical: string | null;
  readonly robots: { readonly noindex: boolean; readonly nofollow: boolean };
  /** Absolute http and https URLs without fragment, each once, in their order. Without those of `nofollowLinks`. */
  readonly links: readonly string[];
  /** Links that are only given with `rel="nofollow"`. */
  readonly nofollowLinks: readonly string[];
  /** Where `<meta http-equiv="refresh">` leads to at once, or the frame that a page without a text of its own consists of. */
  readonly forward: string | null;
  /** The page has more links than are listed. */
  readonly linksTruncated: boolean;
  /** The readable text, as Markdown; at most 5 Mi characters. */
  readonly text: string;
  readonly structured: StructuredData;
}

export interface PageSource {
  /** Where the page was found, after redirects. Relative links are resolved against it. */
  readonly url: string;
  /** The header `Content-Type`. */
  readonly contentType: string | null;
}

/** A document whose facts are wanted. */
export interface Content {
  /** Scopes the keys of nodes that mean nothing outside of their document, such as sections. */
  readonly documentId: string;
  readonly name: string;
  readonly url: string | null;
  readonly contentType: 'text/markdown' | 'text/plain' | 'application/json';
  readonly text: string;
  readonly structured?: StructuredData | null;
}

/** An edge between nodes of the same extraction. Documents state when it was true in their text only. */
export type ExtractedEdge = EdgeToLearn & {
  readonly source: string;
  readonly target: string;
  readonly validAt: null;
  readonly invalidAt: null;
};

export interface Extraction {
  /** Parts of the text, each exactly as it is written there. */
  readonly passages: readonly string[];
  readonly nodes: readonly NodeToLearn[];
  readonly edges: readonly ExtractedEdge[];
  /** The document holds more than the limits allow. */
  readonly truncated: boolean;
  /** Of the text that facts were looked for in. */
  readonly characters: number;
}

/** The facts of a content, and the document that they were extracted for. */
export interface DocumentFacts extends Pick<Content, 'documentId' | 'name' | 'url'> {
  readonly extraction: Extraction;
}

export interface PageWithFacts {
  readonly page: Page;
  readonly facts: DocumentFacts;
}

export interface PdfText {
  readonly title: string | null;
  /** Markdown with a heading for each page. */
  readonly text: string;
  readonly pages: { readonly all: number; readonly read: number; readonly withoutText: number };
  /** Of the lines of the pages. */
  readonly characters: number;
  readonly truncated: boolean;
}

export type ExtractionFailure = 'encrypted' | 'unreadable' | 'timeout' | 'out_of_memory' | 'cancelled' | 'closed';

/** The content cannot be read. `message` says why, for users. */
export class ExtractionError extends Error {
  override readonly name = 'ExtractionError';
  readonly reason: ExtractionFailure;

  constructor(reason: ExtractionFailure, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}
