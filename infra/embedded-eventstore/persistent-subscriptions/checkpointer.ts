// Writes the checkpoint of a group: at the latest after `maxCheckpointCount`
// handled messages; after at least `minCheckpointCount`, every `checkpointAfterMs`.
import type { GroupSettings } from './group-settings.ts';

type Limits = Pick<GroupSettings, 'minCheckpointCount' | 'maxCheckpointCount' | 'checkpointAfterMs'>;

export type CheckpointerPorts = {
  /** The last offset up to which all messages are handled. */
  current(): number;
  /** Resolves when it is on disk. */
  write(offset: number): Promise<void>;
};

export class Checkpointer {
  /** The offset on disk; undefined before the first checkpoint. */
  written: number | undefined;
  #limits: Limits;
  #ports: CheckpointerPorts;
  #handledSince = 0;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;

  constructor(limits: Limits, ports: CheckpointerPorts, written: number | undefined) {
    this.#limits = limits;
    this.#ports = ports;
    this.written = written;
  }

  handled(): void {
    this.#handledSince++;
    if (this.#handledSince >= Math.max(1, this.#limits.maxCheckpointCount)) this.#begin();
    this.#timer ??= this.#startTimer();
  }

  /** Writes the last checkpoint. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#writing;
    if (this.#handledSince > 0) this.#begin();
    await this.#writing;
    clearTimeout(this.#timer);
  }

  #startTimer(): NodeJS.Timeout {
    const onTimer = (): void => {
      this.#timer = undefined;
      if (this.#handledSince === 0) return;
      if (this.#handledSince >= this.#limits.minCheckpointCount) this.#begin();
      this.#timer = this.#startTimer();
    };
    return setTimeout(onTimer, Math.max(1, this.#limits.checkpointAfterMs)).unref();
  }

  /** One write at a time; the next one covers messages handled meanwhile. */
  #begin(): void {
    if (this.#writing) return;
    const offset = this.#ports.current();
    if (offset < 0 || offset === this.written) return;
    const covered = this.#handledSince;
    const onWritten = (): void => {
      this.written = offset;
      this.#handledSince -= covered;
    };
    // A checkpoint that cannot be written only causes redeliveries; the next one tries again.
    const write = this.#ports.write(offset).then(onWritten, () => undefined);
    this.#writing = write.finally(() => (this.#writing = undefined));
  }
}
