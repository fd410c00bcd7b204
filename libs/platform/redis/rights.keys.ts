/** A key and a topic that nothing uses, to find out which rights the user of Redis has. */
export const RIGHTS_PROBE = 'parley:{rights}:probe';

/** The pub/sub channel of the probes of one subscription, in the slot of the channel that it proves. */
export const probeOf = (id: string, channel: string): string => `parley:probe:${id}:{${channel}}`;
