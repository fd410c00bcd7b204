import { describeStoredEvents } from '#test/support/event-samples.ts';

import { channelCodec } from './channel.events.ts';
import samples from './channel.events.samples.json' with { type: 'json' };

describeStoredEvents('channels', channelCodec, samples);
