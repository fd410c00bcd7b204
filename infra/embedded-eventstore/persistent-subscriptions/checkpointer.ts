// When a group writes its checkpoint: at the latest after `maxCheckpointCount`
// handled messages, at the earliest after `minCheckpointCount` of them, then
// every `checkpointAfterMs`.
import type { GroupSettings } from './group-settings.ts';

type Limits = Pick<GroupSettings, 'minCheckpointCount' | 'maxCheckpointCount' | 'checkpointAfterMs'>;

export type CheckpointerPorts = {
  /** The last offset up to which everything is handled now. */
  current(): number;
  /** Resolves when it is on disk. */
  write(offset: number): Promise<void>;
};

export class Checkpointer {
  #limits: Limits;
  #ports: CheckpointerPorts;
  #handledSince = 0;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #written: number | undefined;

  /** `written`: what is on disk. */
  constructor(limits: Limits, ports: CheckpointerPorts, written: number | undefined) {
    this.#limits = limits;
    this.#ports = ports;
    this.#written = written;
  }

  /** What is on disk; undefined before the first. */
  get written(): number | undefined {
    return this.#written;
  }

  handled(): void {
    this.#handledSince++;
    if (this.#handledSince >= Math.max(1, this.#limits.maxCheckpointCount)) this.#begin();
    this.#timer ??= setTimeout(() => this.#timeIsUp(), Math.max(1, this.#limits.checkpointAfterMs)).unref();
  }

  /** Writes what is still to be written; nothing is written afterwards. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#writing;
    if (this.#handledSince > 0) this.#begin();
    await this.#writing;
    clearTimeout(this.#timer);
  }

  #timeIsUp(): void {
    this.#timer = undefined;
    if (this.#handledSince === 0) return;
    if (this.#handledSince >= this.#limits.minCheckpointCount) this.#begin();
    if (this.#handledSince > 0) {
      this.#timer = setTimeout(() => this.#timeIsUp(), Math.max(1, this.#limits.checkpointAfterMs)).unref();
    }
  }

  /** One write at a time; what is handled meanwhile goes into the next. */
  #begin(): void {
    if (this.#writing) return;
    const offset = this.#ports.current();
    if (offset < 0 || offset === this.#written) return;
    const covered = this.#handledSince;
    this.#writing = this.#ports.write(offset).then(
      () => {
        this.#written = offset;
        this.#handledSince -= covered;
        this.#writing = undefined;
      },
      // A checkpoint that cannot be written only causes redeliveries; the next one tries again.
      () => {
        this.#writing = undefined;
      },
    );
  }
}
