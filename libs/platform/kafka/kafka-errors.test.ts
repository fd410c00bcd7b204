import {
  KafkaJSConnectionError,
  KafkaJSNonRetriableError,
  KafkaJSNumberOfRetriesExceeded,
  KafkaJSProtocolError,
} from 'kafkajs';
import { describe, expect, it } from 'vitest';
import { Fault } from '#libs/kernel/faults.ts';
import { kafkaFault } from './kafka-errors.ts';

/** As kafkajs makes them of what a broker answers. */
function answered(type: string, retriable: boolean): KafkaJSProtocolError {
  const error = new KafkaJSProtocolError(`the broker said ${type}`);
  return Object.assign(error, { type, retriable });
}

const exceeded = (cause: Error) =>
  Object.assign(new KafkaJSNumberOfRetriesExceeded(cause, { retryCount: 3, retryTime: 100 }), { cause });

describe('faults of Kafka', () => {
  it.each([
    ['a broken connection', new KafkaJSConnectionError('refused')],
    ['no broker', Object.assign(new KafkaJSNonRetriableError('none'), { name: 'KafkaJSBrokerNotFound' })],
    ['a partition between two leaders', answered('LEADER_NOT_AVAILABLE', true)],
    ['retries that ran out over one', exceeded(new KafkaJSConnectionError('refused'))],
    ['retries that ran out over a partition between two leaders', exceeded(answered('NOT_ENOUGH_REPLICAS', true))],
    [
      'one that says it cannot be retried, over one that can',
      Object.assign(new KafkaJSNonRetriableError('no'), { cause: new KafkaJSConnectionError('refused') }),
    ],
  ])('say that it is away: %s', (_, error) => {
    expect(kafkaFault(error)).toMatchObject({ code: 'store_unavailable', status: 503, cause: error });
  });

  it.each([
    ['a message that is too large', answered('MESSAGE_TOO_LARGE', false)],
    ['retries that ran out over one', exceeded(answered('TOPIC_AUTHORIZATION_FAILED', false))],
    ['a mistake of ours', new TypeError('undefined is not a function')],
  ])('leave what no waiting mends as it is: %s', (_, error) => {
    expect(kafkaFault(error)).toBe(error);
  });

  it('are not wrapped twice', () => {
    const fault = new Fault('stopping', 'stopping');
    expect(kafkaFault(fault)).toBe(fault);
  });
});
