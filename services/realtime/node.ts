import { RealtimeNode } from '#libs/features/realtime/index.ts';
import type { PublishedHeads } from '#libs/features/realtime/index.ts';
import { CHANNEL } from '#libs/features/channels/index.ts';
import { sequenceOf } from '#libs/kernel/event.ts';
import { entityKeys } from '#libs/platform/readmodel/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import type { Features } from '#services/features.ts';

const nodes = new WeakMap<Platform, RealtimeNode>();

/** The one node of a process: its websockets and its event streams hear each channel once. */
export function realtimeNodeOf(platform: Platform, features: Features): RealtimeNode {
  let node = nodes.get(platform);
  // One that was stopped stays so; whoever starts again on the same stores gets another.
  if (node === undefined || node.isStopping) {
    node = new RealtimeNode(platform, { ...features.realtime, heads: publishedHeads(platform) });
    nodes.set(platform, node);
  }
  return node;
}

/** As far as the read models have come. */
function publishedHeads({ readModel }: Pick<Platform, 'readModel'>): PublishedHeads {
  return {
    async heads(channels) {
      const keys = channels.map((one) => entityKeys(CHANNEL, one.organizationId, one.channelId).revision);
      return (await readModel.revisions(keys)).map(sequenceOf);
    },
  };
}
