/** A key and a topic that nothing uses, to find out which rights the user of Redis has. */
export const RIGHTS_PROBE = 'parley:{rights}:probe';

/** The pub/sub channel of the probes of one subscription. */
export const probeOf = (id: string): string => `parley:probe:${id}`;
