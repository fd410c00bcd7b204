import { describeStoredEvents } from '#test/support/event-samples.ts';

import { organizationCodec } from './organization.events.ts';
import samples from './organization.events.samples.json' with { type: 'json' };

describeStoredEvents('organizations', organizationCodec, samples);
