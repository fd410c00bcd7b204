import { expect, test } from 'vitest';
import { Latencies } from './consumer.ts';

const values = (latencies: Latencies) =>
  Object.fromEntries(latencies.measurements().map(({ key, value }) => [key, value]));

test('latencies are summarised by mean, median, extremes and percentiles', () => {
  const latencies = new Latencies();
  for (let ms = 100; ms >= 1; ms--) latencies.add(ms);
  expect(values(latencies)).toMatchObject({
    Mean: 51,
    Median: 50,
    Fastest: 1,
    'Quintile 1': 20,
    'Quintile 3': 60,
    '90%': 90,
    '99%': 99,
    Highest: 100,
  });
});

test('latencies cover the last answers only', () => {
  const latencies = new Latencies();
  for (let n = 0; n < 1000; n++) latencies.add(500);
  for (let n = 0; n < 1000; n++) latencies.add(1);
  expect(values(latencies)['Highest']).toBe(1);
});

test('latencies without answers are 0', () => {
  expect(new Set(Object.values(values(new Latencies())))).toEqual(new Set([0]));
});
