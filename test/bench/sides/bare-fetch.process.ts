/** Fetches pages and does nothing with them. */
import { Agent, request } from 'undici';

import { answerTasks, timed } from '../child-process.ts';
import type { FetchTask } from '../crawl.benchmark.ts';

answerTasks(async ({ origin, paths, atOnce }: FetchTask) => {
  const dispatcher = new Agent();
  const fetchAll = async (): Promise<number> => {
    const waiting = [...paths];
    const fetchNext = async (): Promise<void> => {
      for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
        const { statusCode, body } = await request(new URL(path, origin), { dispatcher });
        await body.bytes();
        if (statusCode !== 200) throw new Error(`${statusCode} for ${path}`);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, fetchNext));
    return paths.length;
  };
  await fetchAll();
  const measured = await timed(fetchAll);
  await dispatcher.close();
  return measured;
});
