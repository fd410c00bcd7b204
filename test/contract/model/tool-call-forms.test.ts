/* The forms in which endpoints send tool calls: each is from a documented or reported endpoint. */
import { describe, expect, it } from 'vitest';

import { chunks, delta, streams } from '#test/support/model-server.ts';

import { call, body, callsOf, endOf, so, stop, useScriptedEndpoint } from './scripted-endpoint.ts';

const { partsOf } = useScriptedEndpoint();

const args = (text: unknown): object => ({ function: { arguments: text } });
const me = ['search', { query: 'me' }];
const you = ['search', { query: 'you' }];

describe('tool calls', () => {
  const whole = (id: string | undefined, query: string, more: object = {}) => {
    return {
      ...(id !== undefined && { id }),
      ...more,
      function: { name: 'search', arguments: `{"query":"${query}"}` },
    };
  };
  const forms: Readonly<Record<string, { readonly deltas: readonly object[]; readonly calls: readonly unknown[] }>> = {
    'without an index': {
      deltas: [call({ id: 'a', function: { name: 'search', arguments: '{"query":' } }), call(args('"me"}'))],
      calls: [me],
    },
    'without an id in the first delta': {
      deltas: [
        call({ index: 0, function: { name: 'search' } }),
        call({ index: 0, id: 'a', ...args('{"query":"me"}') }),
      ],
      calls: [me],
    },
    'with the id and the name in each delta': {
      deltas: ['{"query"', ':"me', '"}', ''].map((piece) =>
        call({ index: 0, id: 'a', function: { name: 'search', arguments: piece } }),
      ),
      calls: [me],
    },
    'with another id in each delta': {
      deltas: [
        call({ index: 0, id: 'a', function: { name: 'search', arguments: '' } }),
        call({ index: 0, id: 'b', ...args('{"query":') }),
        call({ index: 0, id: 'c', ...args('"me"}') }),
      ],
      calls: [me],
    },
    'with the name in pieces': {
      deltas: [
        call({ index: 0, id: 'a', function: { name: 'sea' } }),
        call({ index: 0, function: { name: 'rch', arguments: '{"query":"me"}' } }),
      ],
      calls: [me],
    },
    'with arguments that are an object': {
      deltas: [call({ index: 0, id: 'a', function: { name: 'search', arguments: { query: 'me' } } })],
      calls: [me],
    },
    'with arguments that are JSON in JSON': {
      deltas: [call({ index: 0, id: 'a', function: { name: 'search', arguments: '"{\\"query\\":\\"me\\"}"' } })],
      calls: [me],
    },
    'with arguments that follow empty ones': {
      deltas: [
        call({ index: 0, id: 'a', function: { name: 'search', arguments: '{}' } }),
        call({ index: 0, ...args('{"query":"me"}') }),
      ],
      calls: [me],
    },
    'with empty arguments': {
      deltas: [call({ index: 0, id: 'a', function: { name: 'now', arguments: '' } })],
      calls: [['now', {}]],
    },
    'without arguments': { deltas: [call({ index: 0, id: 'a', function: { name: 'now' } })], calls: [['now', {}]] },
    'several with one index and different ids': {
      deltas: [call(whole('a', 'me', { index: 0 })), call(whole('b', 'you', { index: 0 }))],
      calls: [me, you],
    },
    'several with one index and no ids': {
      deltas: [call(whole('', 'me', { index: 0 })), call(whole('', 'you', { index: 0 }))],
      calls: [me, you],
    },
    'several without index and ids': {
      deltas: [delta({ tool_calls: [whole(undefined, 'me'), whole(undefined, 'you')] })],
      calls: [me, you],
    },
    'with pieces of two calls in turn': {
      deltas: [
        delta({ tool_calls: [{ index: 0, id: 'a', function: { name: 'search', arguments: '{"query":' } }] }),
        delta({ tool_calls: [{ index: 1, id: 'b', function: { name: 'search', arguments: '{"query":"y' } }] }),
        delta({
          tool_calls: [
            { index: 0, ...args('"me"}') },
            { index: 1, ...args('ou"}') },
          ],
        }),
      ],
      calls: [me, you],
    },
    'of the former kind': {
      deltas: [
        delta({ function_call: { name: 'search', arguments: '{"query":' } }),
        delta({ function_call: { arguments: '"me"}' } }, 'function_call'),
      ],
      calls: [me],
    },
    'with marks of a chat format around the name': {
      deltas: [call(whole('functions.search:0', 'me')), call({ function: { name: 'functions.now<|call|>' } })],
      calls: [me, ['now', {}]],
    },
    'with no content, or an empty list of calls': {
      deltas: [
        delta({ content: null, tool_calls: [] }),
        call(whole('a', 'me')),
        delta({ content: '', tool_calls: [] }),
      ],
      calls: [me],
    },
    'of a tool that does not exist': {
      deltas: [call({ index: 0, id: 'a', function: { name: 'destroy', arguments: '{}' } })],
      calls: [['destroy', 'unknown_tool']],
    },
  };

  it.each(Object.entries(forms))('%s are read', async (_what, { deltas, calls }) => {
    for (const finish of ['tool_calls', 'stop']) {
      const parts = await partsOf(streams(chunks(...deltas, delta({}, finish))));
      expect(callsOf(parts)).toEqual(calls);
      expect(endOf(parts).reason).toBe('tool_calls');
    }
  });

  it('in a body that is no stream are read', async () => {
    const parts = await partsOf(body({ content: null, tool_calls: [whole('a', 'me')] }));
    expect(callsOf(parts)).toEqual([me]);
  });

  it('that were announced and are not there end an answer', async () => {
    expect(endOf(await partsOf(streams(chunks(so, delta({ tool_calls: [] }, 'tool_calls'))))).reason).toBe('stop');
  });

  it('are bounded', async () => {
    const long = call({
      index: 0,
      id: 'a',
      function: { name: 'search', arguments: `{"query":"${'x'.repeat(100_000)}"}` },
    });
    const many = delta({
      tool_calls: Array.from({ length: 100 }, (_, index) => ({ index, ...whole(`c${index}`, 'me') })),
    });
    const tooLong = await partsOf(streams(chunks(long, stop)));
    expect(callsOf(tooLong)).toEqual([['search', 'invalid_arguments']]);
    const tooMany = await partsOf(streams(chunks(many, stop)));
    expect(callsOf(tooMany)).toHaveLength(64);
    expect(endOf(tooMany).omitted).toEqual(['36 further tool calls']);
  });
});
