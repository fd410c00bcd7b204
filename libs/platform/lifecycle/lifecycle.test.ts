import { describe, expect, it } from 'vitest';
import { startBackgroundJob } from './background-job.ts';
import { silentLog, type LifecycleLog } from './run-process.ts';
import { backoffMs, pause, retry, unlessAborted, withTimeLimit } from './retry.ts';
import { StopSequence } from './stop-sequence.ts';

describe('stop sequence', () => {
  it('stops what was started last first', async () => {
    const stopped: string[] = [];
    const sequence = new StopSequence(silentLog, 1_000);
    for (const name of ['stores', 'projector', 'gateway']) sequence.add(name, () => void stopped.push(name));
    expect(await sequence.stop()).toEqual([]);
    expect(stopped).toEqual(['gateway', 'projector', 'stores']);
  });

  it('waits for a part to be done before it stops the ones under it', async () => {
    const stopped: string[] = [];
    const sequence = new StopSequence(silentLog, 1_000);
    sequence.add('stores', () => void stopped.push('stores'));
    sequence.add('gateway', async () => {
      await new Promise((resolve) => setImmediate(resolve));
      stopped.push('gateway drained');
    });
    await sequence.stop();
    expect(stopped).toEqual(['gateway drained', 'stores']);
  });

  it('stops the other parts if one hangs or fails, and names it', async () => {
    const log = recordingLog();
    const sequence = new StopSequence(log, 1_000);
    let storesStopped = false;
    sequence.add('stores', () => void (storesStopped = true));
    sequence.add('hangs', () => new Promise<void>(() => undefined), 5);
    sequence.add('fails', () => Promise.reject(new Error('no')));
    expect(await sequence.stop()).toEqual(['fails', 'hangs']);
    expect(storesStopped).toBe(true);
    expect(log.messages).toHaveLength(2);
  });

  it('stops once, however often it is asked', async () => {
    let stops = 0;
    const sequence = new StopSequence(silentLog, 1_000);
    sequence.add('stores', () => void stops++);
    await Promise.all([sequence.stop(), sequence.stop()]);
    expect(stops).toBe(1);
  });
});

describe('background job', () => {
  it('runs again after a failure, until it is stopped', async () => {
    let runs = 0;
    const third = Promise.withResolvers<void>();
    const log = recordingLog();
    const job = startBackgroundJob({
      name: 'job',
      log,
      backoff: { firstMs: 1, maxMs: 1 },
      async run(signal) {
        runs++;
        if (runs < 3) throw new Error('not yet');
        third.resolve();
        await pause(60_000, signal);
      },
    });
    await third.promise;
    await job.stop();
    expect(runs).toBe(3);
    expect(log.messages).toHaveLength(2);
  });

  it('ends for good at a fatal error, and says so', async () => {
    const fatal: unknown[] = [];
    const error = new Error('corrupt');
    const job = startBackgroundJob({
      name: 'job',
      log: silentLog,
      run: () => Promise.reject(error),
      isFatal: (thrown) => thrown === error,
      onFatal: (thrown) => fatal.push(thrown),
    });
    await job.ended;
    expect(fatal).toEqual([error]);
  });

  it('does not sit out a pause when it is stopped', async () => {
    const failed = Promise.withResolvers<void>();
    const job = startBackgroundJob({
      name: 'job',
      log: { ...silentLog, error: () => failed.resolve() },
      backoff: { firstMs: 3_600_000, maxMs: 3_600_000 },
      run: () => Promise.reject(new Error('always')),
    });
    await failed.promise;
    await expect(job.stop()).resolves.toBeUndefined();
  });
});

describe('work that can be given up', () => {
  const never = new Promise<never>(() => undefined);

  it('has the outcome of the work if it is not aborted', async () => {
    const { signal } = new AbortController();
    await expect(unlessAborted(Promise.resolve(1), signal)).resolves.toBe(1);
    await expect(unlessAborted(Promise.reject(new Error('no')), signal)).rejects.toThrow('no');
  });

  it('rejects with the reason of the signal, before or during the work', async () => {
    const abort = new AbortController();
    const work = unlessAborted(never, abort.signal);
    abort.abort(new Error('stopping'));
    await expect(work).rejects.toThrow('stopping');
    await expect(unlessAborted(never, abort.signal)).rejects.toThrow('stopping');
  });
});

describe('retry', () => {
  const failing = (times: number) => {
    let calls = 0;
    return () => (++calls > times ? Promise.resolve(calls) : Promise.reject(new Error(`failure ${calls}`)));
  };

  it('repeats the work until it succeeds, and reports each failure', async () => {
    const reported: unknown[] = [];
    const onFailure = (error: unknown, failures: number): void => void reported.push([String(error), failures]);
    await expect(retry(failing(2), { firstMs: 1, onFailure })).resolves.toBe(3);
    expect(reported).toEqual([
      ['Error: failure 1', 1],
      ['Error: failure 2', 2],
    ]);
  });

  it('ends with what its caller throws about a failure', async () => {
    const onFailure = (): void => {
      throw new Error('given up');
    };
    await expect(retry(failing(1), { onFailure })).rejects.toThrow('given up');
  });

  it('ends with the last error when it is aborted during a pause', async () => {
    const abort = new AbortController();
    const onFailure = (): void => abort.abort();
    await expect(retry(failing(1), { firstMs: 3_600_000, signal: abort.signal, onFailure })).rejects.toThrow(
      'failure 1',
    );
  });
});

describe('backoff', () => {
  it('doubles up to its bound, less at most a fifth', () => {
    for (const [attempt, full] of [
      [1, 100],
      [2, 200],
      [5, 1_600],
      [1_000, 5_000],
    ] as const) {
      expect(backoffMs(attempt)).toBeLessThanOrEqual(full);
      expect(backoffMs(attempt)).toBeGreaterThanOrEqual(full * 0.8);
    }
  });
});

function recordingLog(): LifecycleLog & { readonly messages: string[] } {
  const messages: string[] = [];
  const record = (_fields: object, message: string): void => void messages.push(message);
  return { info: record, warn: record, error: record, messages };
}

describe('work with a time limit', () => {
  /** Ends as soon as its signal aborts. */
  const untilAborted = (signal: AbortSignal): Promise<never> =>
    unlessAborted(new Promise<never>(() => undefined), signal);

  it('is aborted when its time is up', async () => {
    const work = withTimeLimit(5, new AbortController().signal, untilAborted);
    await expect(work).rejects.toMatchObject({ name: 'TimeoutError' });
  });

  it('is aborted with the signal of its caller, for the same reason', async () => {
    const stop = new AbortController();
    const work = withTimeLimit(60_000, stop.signal, untilAborted);
    stop.abort(new Error('the worker stops'));
    await expect(work).rejects.toThrow('the worker stops');
    await expect(withTimeLimit(60_000, stop.signal, untilAborted)).rejects.toThrow('the worker stops');
  });

  it('returns its result, and is not aborted afterwards', async () => {
    const stop = new AbortController();
    const signal = await withTimeLimit(60_000, stop.signal, async (limited) => limited);
    stop.abort();
    expect(signal.aborted).toBe(false);
  });
});
