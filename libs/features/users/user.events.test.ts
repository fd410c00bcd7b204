import { describeStoredEvents } from '#test/support/event-samples.ts';

import { userCodec } from './user.events.ts';
import samples from './user.events.samples.json' with { type: 'json' };

describeStoredEvents('users', userCodec, samples);
