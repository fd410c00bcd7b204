import { describeStoredEvents } from '#test/support/event-samples.ts';

import { keyCodec } from './key.events.ts';
import samples from './key.events.samples.json' with { type: 'json' };

describeStoredEvents('keys', keyCodec, samples);
