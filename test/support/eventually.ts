/**
 * Polls until `probe` neither throws nor returns `false`, then returns its value. For conditions that another process
 * makes true, where the length of a sleep would be a guess. The deadline only ends what hangs: no test passes or fails by it on
 * a busy machine.
 * @throws the last error of `probe` once `timeoutMs` has passed
 */
export async function eventually<T>(
  probe: () => T | Promise<T>,
  { timeoutMs = 60_000, everyMs = 20 }: { timeoutMs?: number; everyMs?: number } = {},
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    let failure: unknown = new Error('condition did not become true');
    try {
      const value = await probe();
      if (value !== false) return value;
    } catch (error) {
      failure = error;
    }
    if (Date.now() > deadline) throw failure;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
