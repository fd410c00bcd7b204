/**
 * The error entries of the API's 422 answers: the types and words of pydantic 2, the shape of
 * FastAPI's HTTPValidationError. Recorded output of both is compared in test/contract/pydantic.
 */
export interface ValidationError {
  readonly type: string;
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  /** The value that was refused; for `missing`, the object that lacks it. Left out when it is large. */
  readonly input?: unknown;
  readonly ctx?: Readonly<Record<string, unknown>>;
}

/** An error without its place: what a check knows about a value. */
export interface PydanticError {
  readonly type: string;
  readonly msg: string;
  readonly ctx?: Readonly<Record<string, unknown>>;
}
