import { describeStoredEvents } from '#test/support/event-samples.ts';

import { interactionCodec } from './interaction.events.ts';
import samples from './interaction.events.samples.json' with { type: 'json' };

describeStoredEvents('interactions', interactionCodec, samples);
