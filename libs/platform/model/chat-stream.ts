import type { Readable } from 'node:stream';

import { createParser } from 'eventsource-parser';

import { isObject, type JsonObject, parsedJson } from '#libs/kernel/json.ts';

import { admitText } from '#libs/kernel/text.ts';

import { EndpointError, Failure, statusOfError } from './model.failures.ts';

/** Of a body that is no stream of events, kept to say what it was. */
const MAX_SHOWN = 2_000;

/** Chunks that arrived together. */
export interface Arrived {
  readonly chunks: readonly JsonObject[];
  /** The endpoint said that nothing follows. */
  readonly isDone: boolean;
  /** Says that the text after the chunks is no chunk; null without such text. */
  readonly failure: Error | null;
}

/**
 * The chunks in the body of a response: of a stream of events, or the whole of a body that is JSON, which some endpoints
 * send although a stream was asked for. Events whose data are no object, such as pings, are passed over.
 */
export class ChunkReader {
  readonly #decoder = new TextDecoder();
  readonly #parser = createParser({ onEvent: ({ event, data }) => this.#onEvent(data, event) });
  #chunks: JsonObject[] = [];
  #isDone = false;
  #failure: Error | null = null;
  /** Null until the first character tells. */
  #isJson: boolean | null = null;
  #json = '';

  /** @throws Failure for a body that is no answer */
  read(bytes: Uint8Array): Arrived {
    return this.#read(this.#decoder.decode(bytes, { stream: true }));
  }

  /** After the last byte: also what was not ended by an empty line. */
  end(): Arrived {
    const rest = this.#read(`${this.#decoder.decode()}${this.#isJson === true ? '' : '\n\n'}`);
    if (this.#isJson !== true) return rest;
    const body = parsedJson(this.#json);
    if (body === undefined) throw notAnAnswer(this.#json);
    const chunks = (Array.isArray(body) ? body : [body]).filter(isObject);
    return { chunks, isDone: true, failure: null };
  }

  #read(text: string): Arrived {
    if (this.#isJson === null) this.#isJson = beginsAsJson(text);
    if (this.#isJson === true) this.#json += text;
    else if (this.#isJson === false) this.#parser.feed(text);
    const arrived = { chunks: this.#chunks, isDone: this.#isDone, failure: this.#failure };
    this.#chunks = [];
    return arrived;
  }

  #onEvent(data: string, event: string | undefined): void {
    if (this.#failure !== null) return;
    // The first character, without a copy of the data.
    if (data.charCodeAt(0) !== BRACE) {
      const text = data.trim();
      if (text === '[DONE]') this.#isDone = true;
      if (!text.startsWith('{')) return;
    }
    const chunk = parsedJson(data);
    if (!isObject(chunk)) {
      // Its text would be missing.
      const detail = `an event is no JSON: ${admitText(data, MAX_SHOWN)}`;
      this.#failure = new Failure('bad_response', INVALID, detail);
    } else if (event === 'error') this.#failure = new EndpointError(statusOfError(chunk), new Map(), data);
    else this.#chunks.push(chunk);
  }
}

const BRACE = 123;
const INVALID = 'the model gave an answer that is not valid';

/** @returns null for blanks @throws Failure for a page */
function beginsAsJson(text: string): boolean | null {
  const first = text.trimStart()[0];
  if (first === undefined) return null;
  if (first === '<') throw notAnAnswer(text);
  return first === '{' || first === '[';
}

function notAnAnswer(text: string): Failure {
  return new Failure('bad_response', INVALID, `the body is no answer: ${admitText(text, MAX_SHOWN)}`);
}

/**
 * Lets a response end by itself, so that its connection can be used again; one that stays open is closed after a while.
 */
export function release(body: Readable, afterMs = 1_000): void {
  if (body.closed || body.destroyed) return;
  const timer = setTimeout(() => body.destroy(), afterMs);
  body.on('error', () => undefined);
  body.once('close', () => clearTimeout(timer));
  body.resume();
}

/** Of the body of an error. */
const MAX_ERROR_BYTES = 65_536;
const ERROR_BODY_MS = 5_000;

/** The beginning of an error's body; what has arrived, if the rest is late. */
export async function textOf(body: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  const late = setTimeout(() => body.destroy(), ERROR_BODY_MS);
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_ERROR_BYTES) break;
    }
  } catch {
    // The status says what is needed.
  } finally {
    clearTimeout(late);
  }
  return admitText(Buffer.concat(chunks).toString(), MAX_ERROR_BYTES);
}
