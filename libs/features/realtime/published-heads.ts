import { sequenceOf } from '#libs/kernel/event.ts';
import { entityKeys } from '#libs/platform/readmodel/index.ts';
import type { Core } from '#libs/platform/runtime/index.ts';

import type { PublishedHeads } from './realtime.ports.ts';

/** Heads of channels as the read models have them. */
export function publishedHeads(readModel: Core['readModel'], category: string): PublishedHeads {
  return {
    async heads(channels) {
      const keys = channels.map((one) => entityKeys(category, one.organizationId, one.channelId).revision);
      return (await readModel.revisions(keys)).map(sequenceOf);
    },
  };
}
