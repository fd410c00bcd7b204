/** The part of a structured log that life-cycle code needs; a pino logger is one. */
export interface LifecycleLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const silentLog: LifecycleLog = { info: () => undefined, warn: () => undefined, error: () => undefined };
