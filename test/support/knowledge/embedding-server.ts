/** An endpoint for embeddings on loopback. Its vectors are counts of hashed character triples, and synonyms are one word. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const DIMENSIONS = 256;
const SYNONYMS = new Map([
  ['automobile', 'car'],
  ['vehicle', 'car'],
  ['physician', 'doctor'],
]);

export interface EmbeddingServer {
  /** As `EMBEDDING_BASE_URL`. */
  readonly baseUrl: string;
  /** Bodies of the requests, in their order. */
  readonly requests: { readonly model: string; readonly input: readonly string[]; readonly dimensions?: number }[];
  readonly headers: IncomingMessage['headers'][];
  /** Answers instead; null: as an endpoint should. */
  answer: ((input: readonly string[], response: ServerResponse) => void) | null;
  stop(): Promise<void>;
}

export function embedding(text: string, dimensions = DIMENSIONS): number[] {
  const vector = Array.from({ length: dimensions }, () => 0);
  for (const word of text.toLowerCase().match(/\p{L}+/gu) ?? []) {
    const known = ` ${SYNONYMS.get(word) ?? word} `;
    for (let at = 0; at + 3 <= known.length; at++) {
      let hash = 7;
      for (const character of known.slice(at, at + 3))
        hash = (hash * 263 + (character.codePointAt(0) ?? 0)) % 1_000_003;
      vector[hash % dimensions]! += 1;
    }
  }
  // No text is without a direction.
  if (!vector.some((value) => value > 0)) vector[0] = 1;
  return vector;
}

/** Vectors in the form of OpenAI. */
export function sendVectors(response: ServerResponse, vectors: readonly unknown[]): void {
  const data = vectors.map((vector, index) => ({ object: 'embedding', index, embedding: vector }));
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ object: 'list', data }));
}

export async function startEmbeddingServer(): Promise<EmbeddingServer> {
  const requests: EmbeddingServer['requests'] = [];
  const headers: EmbeddingServer['headers'] = [];
  const server = createServer((request, response) => {
    void request.toArray().then((chunks) => {
      const body = JSON.parse(Buffer.concat(chunks).toString());
      requests.push(body);
      headers.push(request.headers);
      if (request.url !== '/v1/embeddings' || request.method !== 'POST') return response.writeHead(404).end();
      if (embeddings.answer !== null) return embeddings.answer(body.input, response);
      return sendVectors(
        response,
        (body.input as string[]).map((text) => embedding(text)),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const embeddings: EmbeddingServer = {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    headers,
    answer: null,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return embeddings;
}
