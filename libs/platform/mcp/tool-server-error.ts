/** How a server refused a request. */
export interface Refusal {
  /** Of HTTP; null: the answer was a success of HTTP. */
  readonly status: number | null;
  /** Of the JSON-RPC error; null: there was none. */
  readonly code: number | null;
  /** The server's own, unchecked. */
  readonly words: string | null;
}

/** How far a session had come: `called` if a tool may have been called. */
export type Stage = 'opening' | 'open' | 'called';

/** Why a server could not be used: a sentence for users, without a full stop. Words of the server are in quotes. */
export class ToolServerError extends Error {
  override readonly name = 'ToolServerError';
  /** Null: the server did not answer, or its answer could not be read. */
  readonly refusal: Refusal | null;
  readonly stage: Stage;

  constructor(
    message: string,
    options: ErrorOptions & { readonly refusal?: Refusal | null; readonly stage?: Stage } = {},
  ) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    this.refusal = options.refusal ?? null;
    this.stage = options.stage ?? 'opening';
  }
}
