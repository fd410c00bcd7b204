import kafkajs from 'kafkajs';
import { describe, expect, it } from 'vitest';
import { Fault } from '#libs/kernel/faults.ts';
import { kafkaFault } from './kafka-errors.ts';

/** As kafkajs creates them from the response of a broker. */
function answered(type: string, retriable: boolean): kafkajs.KafkaJSProtocolError {
  const error = new kafkajs.KafkaJSProtocolError(`the broker said ${type}`);
  return Object.assign(error, { type, retriable });
}

const exceeded = (cause: Error) =>
  Object.assign(new kafkajs.KafkaJSNumberOfRetriesExceeded(cause, { retryCount: 3, retryTime: 100 }), { cause });

describe('errors of kafkajs', () => {
  it.each([
    ['a broken connection', new kafkajs.KafkaJSConnectionError('refused')],
    ['no broker', Object.assign(new kafkajs.KafkaJSNonRetriableError('none'), { name: 'KafkaJSBrokerNotFound' })],
    ['a partition without a leader', answered('LEADER_NOT_AVAILABLE', true)],
    ['exhausted retries because of it', exceeded(new kafkajs.KafkaJSConnectionError('refused'))],
    ['exhausted retries because of a partition without a leader', exceeded(answered('NOT_ENOUGH_REPLICAS', true))],
    [
      'an error that claims not to be retriable, caused by one that is',
      Object.assign(new kafkajs.KafkaJSNonRetriableError('no'), {
        cause: new kafkajs.KafkaJSConnectionError('refused'),
      }),
    ],
  ])('become `store_unavailable` if Kafka is unavailable: %s', (_, error) => {
    expect(kafkaFault(error)).toMatchObject({ code: 'store_unavailable', status: 503, cause: error });
  });

  it.each([
    ['a message that is too large', answered('MESSAGE_TOO_LARGE', false)],
    ['exhausted retries because of it', exceeded(answered('TOPIC_AUTHORIZATION_FAILED', false))],
    ['a bug', new TypeError('undefined is not a function')],
  ])('stay unchanged if they are permanent: %s', (_, error) => {
    expect(kafkaFault(error)).toBe(error);
  });

  it('stay unchanged if they are faults', () => {
    const fault = new Fault('stopping', 'stopping');
    expect(kafkaFault(fault)).toBe(fault);
  });
});
