import { describeStoredEvents } from '#test/support/event-samples.ts';

import { reactionCodec } from './reaction.events.ts';
import samples from './reaction.events.samples.json' with { type: 'json' };

describeStoredEvents('reactions', reactionCodec, samples);
