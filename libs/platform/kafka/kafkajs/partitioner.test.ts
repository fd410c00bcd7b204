import { randomBytes } from 'node:crypto';
import { Partitioners } from 'kafkajs';
import { describe, expect, it } from 'vitest';
import { createPartitioner, partitionOf } from './partitioner.ts';

const metadataOf = (partitions: number) =>
  Array.from({ length: partitions }, (_, partitionId) => ({
    partitionErrorCode: 0,
    partitionId,
    leader: 1,
    replicas: [1],
    isr: [1],
  }));

describe('partitioner', () => {
  it('chooses the same partition as kafkajs, for keys of any length and any bytes', () => {
    const standard = Partitioners.DefaultPartitioner();
    const keys = Array.from({ length: 400 }, (_, length) => randomBytes(length % 67));
    for (const key of [...keys, 'channel-01a1fd41-60a1-72e0-b528-774b668e3498', 'grüße', '']) {
      for (const partitions of [1, 12, 13]) {
        const partitionMetadata = metadataOf(partitions);
        expect(partitionOf(key, partitions)).toBe(
          standard({ topic: 'a', partitionMetadata, message: { key, value: '' } }),
        );
      }
    }
  });

  it('chooses the same partition as the clients of Apache Kafka', () => {
    // From UtilsTest.java: murmur2 of "21", of "foobar" and of "a-little-bit-long-string".
    expect(partitionOf('21', 2 ** 31)).toBe(-973932308 & 0x7fffffff);
    expect(partitionOf('foobar', 2 ** 31)).toBe(-790332482 & 0x7fffffff);
    expect(partitionOf('a-little-bit-long-string', 2 ** 31)).toBe(-985981536 & 0x7fffffff);
  });

  it('keeps an explicit partition, and spreads messages without a key', () => {
    const choose = createPartitioner();
    const partitionMetadata = metadataOf(12);
    expect(choose({ topic: 'a', partitionMetadata, message: { key: 'a', value: '', partition: 7 } })).toBe(7);
    const chosen = Array.from({ length: 24 }, () => choose({ topic: 'a', partitionMetadata, message: { value: '' } }));
    expect(new Set(chosen).size).toBe(12);
  });
});
