/**
 * Parley in the process of the test: a process of its own takes ten times as long, and is started where it is killed, or where
 * its output, memory or exit code is checked.
 */
import { startParley, type StartParleyOptions } from '#services/testing/index.ts';

import { ApiClient } from './api-client.ts';
import type { ParleyProcess } from './parley-process.ts';

/** A `ParleyProcess` fits, too. */
export type ParleyHere = Pick<ParleyProcess, 'baseUrl' | 'port' | 'apiKey' | 'api'> & { stop(): Promise<unknown> };

export async function startParleyHere(settings: StartParleyOptions['settings'] = {}): Promise<ParleyHere> {
  const { url: baseUrl, apiKey, stop } = await startParley({ settings });
  const api = new ApiClient(baseUrl, apiKey);
  return {
    baseUrl,
    port: Number(new URL(baseUrl).port),
    apiKey,
    api,
    async stop() {
      api.close();
      await stop();
    },
  };
}
