import { describe, expect, it } from 'vitest';

import { findingsOf } from './findings.ts';

const accepted = { method: 'POST', path: '/api/v1/channels', status: 200, requestId: 'r-1' };
const refused = { method: 'PATCH', path: '/api/v1/channels/7', status: 422, requestId: 'r-2' };
const event = (requestId: string) => ({
  stream: 'channel-7',
  type: 'ChannelRenamed.v1',
  metadata: { $correlationId: requestId },
});

describe('the findings of the fuzzer', () => {
  it('are empty when accepted requests wrote and refused ones did not', () => {
    expect(findingsOf([accepted, refused], [event('r-1')])).toEqual([]);
  });

  it('name an event that a refused request has written', () => {
    expect(findingsOf([accepted, refused], [event('r-1'), event('r-2')])).toEqual([
      'ChannelRenamed.v1 in channel-7 was written by PATCH /api/v1/channels/7, which was answered 422',
    ]);
  });

  it('name an event without a request', () => {
    expect(findingsOf([accepted, refused], [event('r-3')])).toEqual([
      'ChannelRenamed.v1 in channel-7 was written by no request',
    ]);
  });

  it('name an answer with a server error, and a missing answer', () => {
    const failed = { ...refused, status: 500 };
    const silent = { ...refused, status: null };
    expect(findingsOf([accepted, failed, silent], [event('r-1')])).toEqual([
      'PATCH /api/v1/channels/7: 500',
      'PATCH /api/v1/channels/7: no answer',
    ]);
  });

  it('name a run that proves nothing', () => {
    expect(findingsOf([refused], [])).toHaveLength(2);
    expect(findingsOf([accepted], [event('r-1')])).toEqual(['no command was refused: the run proves nothing']);
  });
});
