import { expect, test, vi } from 'vitest';
import { createMetrics } from './metrics.ts';

const metrics = () => createMetrics({ processMetrics: false });

test('durations are counted by route and status, in cumulative buckets', async () => {
  const subject = metrics();
  const route = subject.http.route('GET', '/things/:id');
  route.observe(200, 3);
  route.observe(200, 700);
  route.observe(404, 20_000);
  const text = await subject.scrape();
  const labels = 'method="GET",route="/things/:id"';
  expect(text).toContain(`parley_http_request_duration_seconds_bucket{${labels},status="200",le="0.0025"} 0\n`);
  expect(text).toContain(`parley_http_request_duration_seconds_bucket{${labels},status="200",le="0.005"} 1\n`);
  expect(text).toContain(`parley_http_request_duration_seconds_bucket{${labels},status="200",le="1"} 2\n`);
  expect(text).toContain(`parley_http_request_duration_seconds_count{${labels},status="200"} 2\n`);
  expect(text).toContain(`parley_http_request_duration_seconds_sum{${labels},status="200"} 0.703\n`);
  expect(text).toContain(`parley_http_request_duration_seconds_bucket{${labels},status="404",le="10"} 0\n`);
  expect(text).toContain(`parley_http_request_duration_seconds_bucket{${labels},status="404",le="+Inf"} 1\n`);
});

test('counters and gauges carry the prefix, and a name asked for twice is one metric', async () => {
  const subject = metrics();
  subject.counter('events_applied_total', 'Events', ['outcome']).add({ outcome: 'applied' });
  subject.counter('events_applied_total', 'Events', ['outcome']).add({ outcome: 'applied' }, 2);
  subject.gauge('queue_length', 'Commands that wait').set(7);
  const text = await subject.scrape();
  expect(text).toContain('parley_events_applied_total{outcome="applied"} 3');
  expect(text).toContain('parley_queue_length 7');
});

test('an observed counter is read at each scrape, and says that it is one', async () => {
  const subject = metrics();
  let seen = 3;
  subject.observedCounter('seen_total', 'Events', () => [[{ kind: 'a' }, seen]], ['kind']);
  subject.observedCounter('broken_total', 'Fails', () => Promise.reject(new Error('away')));
  expect(await subject.scrape()).toContain('parley_seen_total{kind="a"} 3');
  seen = 5;
  const text = await subject.scrape();
  expect(text).toContain('# TYPE parley_seen_total counter\nparley_seen_total{kind="a"} 5');
  expect(text).not.toMatch(/^parley_broken_total .*[1-9]/m);
});

test('the build is named by the labels of a gauge', async () => {
  const subject = createMetrics({ processMetrics: false, build: { version: '1.2.3', revision: 'abc' } });
  expect(await subject.scrape()).toContain('parley_build_info{version="1.2.3",revision="abc"} 1');
});

test('an observed gauge is read at each scrape, and one that fails takes nothing with it', async () => {
  const subject = metrics();
  let lag = 3;
  subject.observedGauge('lag', 'Events behind', () => lag);
  subject.observedGauge('broken', 'Fails', () => Promise.reject(new Error('away')));
  expect(await subject.scrape()).toContain('parley_lag 3');
  lag = 4;
  const text = await subject.scrape();
  expect(text).toContain('parley_lag 4');
  expect(text).toContain('parley_broken Nan');
});

test('a process that was paused for a day adds few samples', async () => {
  vi.useFakeTimers({ toFake: ['setInterval'] });
  const clock = vi.spyOn(process, 'hrtime').mockReturnValue([0, 0]);
  try {
    const subject = createMetrics();
    clock.mockReturnValue([86_400, 0]);
    vi.advanceTimersByTime(10_000);
    const text = await subject.scrape();
    const samples = Number(/^nodejs_eventloop_utilization_histogram_count (\d+)$/m.exec(text)?.[1]);
    expect(samples).toBeGreaterThan(0);
    expect(samples).toBeLessThan(10_000);
  } finally {
    clock.mockRestore();
    vi.useRealTimers();
  }
});
