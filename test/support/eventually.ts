const MIN_PAUSE_MS = 20;
const MAX_PAUSE_MS = 100;

/**
 * Polls until `probe` neither throws nor returns `false`, then returns its value. For conditions that another process
 * makes true, where the length of a sleep would be a guess. The deadline only ends what hangs: no test passes or fails by it on
 * a busy machine.
 *
 * @param options `everyMs` is for states that pass. By default, the pauses grow with the time that has passed, to a tenth of
 *   a second: probes are often requests, and dozens of them at once would take the processors from what they wait for.
 * @throws the last error of `probe` once `timeoutMs` has passed
 */
export async function eventually<T>(
  probe: () => T | Promise<T>,
  { timeoutMs = 60_000, everyMs }: { timeoutMs?: number; everyMs?: number } = {},
): Promise<T> {
  const begun = Date.now();
  for (;;) {
    let failure: unknown = new Error('condition did not become true');
    try {
      const value = await probe();
      if (value !== false) return value;
    } catch (error) {
      failure = error;
    }
    const elapsed = Date.now() - begun;
    if (elapsed > timeoutMs) throw failure;
    const pauseMs = everyMs ?? Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, elapsed / 10));
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
