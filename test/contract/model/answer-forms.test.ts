/* The forms in which endpoints send answers: streams, reasoning and ends. Each is from a documented or reported endpoint. */
import { describe, expect, it } from 'vitest';

import { NO_USAGE } from '#libs/platform/model/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { type Answer, chunks, delta, DONE, says, streams } from '#test/support/model-server.ts';

import { body, callsOf, endOf, so, stop, textOf, useScriptedEndpoint } from './scripted-endpoint.ts';

const { model, partsOf, server } = useScriptedEndpoint();

describe('a stream', () => {
  const forms: Readonly<Record<string, Answer>> = {
    'in one piece': streams(`${chunks(so, stop)}${DONE}`),
    'with carriage returns': streams(`${chunks(so, stop)}${DONE}`.replaceAll('\n', '\r\n')),
    'with a byte order mark': streams(`\uFEFF${chunks(so, stop)}${DONE}`),
    'with comments, pings and fields that are unknown': streams(
      `: OPENROUTER PROCESSING\n\nevent: ping\ndata: ping\n\nretry: 10\nid: 1\nfoo: bar\n${chunks(so)}data: {"type":"ping"}\n\n: k\n\n${chunks(stop)}${DONE}`,
    ),
    'without a space after the colon': streams(`${chunks(so, stop)}${DONE}`.replaceAll('data: ', 'data:')),
    'with data in several lines': streams(
      'data: {"choices":[{"delta":{"content":\ndata: "So"},"finish_reason":"stop"}]}\n\n',
    ),
    'without [DONE]': streams(chunks(so, stop)),
    'without an empty line at the end': streams(chunks(so, stop).trimEnd()),
    'without a reason, but with [DONE]': streams(`${chunks(so)}${DONE}`),
    'that stays open after [DONE]': streams(`${chunks(so, stop)}${DONE}`, () => undefined),
    'that stays open after the reason': streams(chunks(so, stop), () => undefined),
    'that breaks off after the reason': streams(chunks(so, stop), (response) => setImmediate(() => response.destroy())),
    'with an error after the reason': streams(chunks(so, stop, { error: { message: 'late', code: 500 } })),
    'with chunks without choices, delta or content': streams(
      chunks({ choices: [] }, { choices: null }, {}, delta(null), delta({ content: null }), so, stop, { usage: null }),
    ),
    'with text as a list of parts': streams(chunks(delta({ content: [{ type: 'text', text: 'So' }] }), stop)),
    'with another choice': streams(
      chunks(
        {
          choices: [
            { index: 1, delta: { content: 'No' } },
            { index: 0, delta: { content: 'So' } },
          ],
        },
        stop,
      ),
    ),
    'with the whole message once more at its end': streams(
      chunks(so, { choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'So' } }] }),
    ),
    'that is a whole message': streams(
      chunks({ choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'So' } }] }),
    ),
    'in the place of which there is a body': body({ role: 'assistant', content: 'So' }),
  };

  it.each(Object.entries(forms))('%s is one answer', async (_what, answer) => {
    const parts = await partsOf(answer);
    expect(parts).toMatchObject([
      { type: 'text', text: 'So' },
      { type: 'finish', reason: 'stop', omitted: [] },
    ]);
  });

  it('frees its connection, also if the endpoint keeps it open', async () => {
    await partsOf(streams(`${chunks(so, stop)}${DONE}`, () => undefined));
    await eventually(() => expect(server().open).toBe(0));
  });

  it('uses a connection again that is kept alive', async () => {
    const one = model();
    for (let count = 0; count < 3; count += 1) await partsOf(says({ text: ['So'] }), {}, one);
    expect(server().open).toBeLessThan(3);
  });

  it('is alive as long as bytes arrive', async () => {
    const pings: Answer = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      let count = 0;
      const timer = setInterval(() => {
        if ((count += 1) < 12) response.write(': still thinking\n\n');
        else response.end(chunks(so, stop));
      }, 50);
      response.on('close', () => clearInterval(timer));
    };
    expect(textOf(await partsOf(pings, {}, model({ firstPartMs: 400, idleMs: 400 })))).toBe('So');
  });

  it('gives whole characters and well-formed text', async () => {
    const cut = streams(
      `data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\n\ndata: {"choices":[{"delta":{"content":"\\ude00b\\ud83d"},"finish_reason":"stop"}]}\n\n`,
    );
    const parts = await partsOf(cut);
    expect(textOf(parts)).toBe('a😀b\uFFFD');
    expect(parts.every((part) => part.type !== 'text' || part.text.isWellFormed())).toBe(true);
    const args = '{"query":"\\ud83d"}';
    const call = delta(
      { tool_calls: [{ index: 0, id: 'a\ud83d', function: { name: 'search', arguments: args } }] },
      'stop',
    );
    const called = await partsOf(streams(chunks(call)));
    expect(callsOf(called)).toEqual([['search', { query: '\uFFFD' }]]);
    expect(JSON.stringify(called)).not.toContain('\\ud83d');
  });
});

describe('JSON that is nested more deeply than it can be written again', () => {
  const deep = `{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;

  it('is no input of a tool', async () => {
    const find = { name: 'find', description: 'Finds.', input: { jsonSchema: { type: 'object' } } };
    const called = delta({ tool_calls: [{ index: 0, id: 'a', function: { name: 'find', arguments: deep } }] }, 'stop');
    const parts = await partsOf(streams(chunks(called)), { tools: [find] });
    expect(parts).toContainEqual(
      expect.objectContaining({ type: 'invalid_tool_call', name: 'find', problem: 'invalid_arguments' }),
    );
  });

  it('is left out of what a message says besides', async () => {
    const parts = await partsOf(
      streams(`data: {"choices":[{"delta":{"content":"So","extra":${deep}},"finish_reason":"stop"}]}\n\n`),
    );
    expect(textOf(parts)).toBe('So');
  });
});

describe('reasoning', () => {
  const forms: Readonly<Record<string, readonly object[]>> = {
    reasoning_content: [delta({ reasoning_content: 'Hm' }), delta({ reasoning_content: 'm.' })],
    reasoning: [delta({ reasoning: 'Hm' }), delta({ reasoning: 'm.' })],
    'two names': [delta({ reasoning: 'Hmm.', reasoning_content: 'Hmm.' })],
    reasoning_details: [
      delta({ reasoning: 'Hmm.', reasoning_details: [{ type: 'reasoning.text', text: 'Hmm.', index: 0 }] }),
    ],
    'reasoning_details alone': [delta({ reasoning_details: [{ type: 'reasoning.summary', summary: 'Hmm.' }] })],
    thinking_blocks: [delta({ thinking_blocks: [{ type: 'thinking', thinking: 'Hmm.', signature: 's' }] })],
    'parts of the content': [
      delta({
        content: [
          { type: 'thinking', thinking: [{ type: 'text', text: 'Hmm.' }] },
          { type: 'text', text: '' },
        ],
      }),
    ],
    'tags in pieces': ['\n<th', 'ink>', 'Hm', 'm.</th', 'ink', '>', '\n\n'].map((content) => delta({ content })),
    'other tags': [delta({ content: '<thought>Hmm.</thought>' })],
    'tags around nothing, and once more': [delta({ content: '<think>\n\n</think>\n<think>Hmm.</think>' })],
  };

  it.each(Object.entries(forms))('as %s is reasoning, and the rest is text', async (_what, deltas) => {
    const parts = await partsOf(streams(chunks(...deltas, so, stop)));
    expect(textOf(parts, 'reasoning').trim()).toBe('Hmm.');
    expect(textOf(parts)).toBe('So');
  });

  it('without an end is reasoning; tags within a text are text', async () => {
    const open = await partsOf(streams(chunks(delta({ content: '<think>Hmm.' }, 'length'))));
    expect([textOf(open, 'reasoning'), textOf(open), endOf(open).reason]).toEqual(['Hmm.', '', 'length']);
    const within = 'Write `<think>` and </think>.';
    expect(textOf(await partsOf(streams(chunks(delta({ content: within }), stop))))).toBe(within);
    expect(textOf(await partsOf(streams(chunks(delta({ content: '<thi' }), stop))))).toBe('<thi');
  });
});

describe('the end of an answer', () => {
  it('has the reason, in a word of the endpoint if it is none that all have', async () => {
    const reasons = { MAX_TOKENS: 'length', end_turn: 'stop', SAFETY: 'content_filter', MALFORMED: 'MALFORMED' };
    for (const [given, reason] of Object.entries(reasons)) {
      expect(endOf(await partsOf(streams(chunks(so, delta({}, given))))).reason).toBe(reason);
    }
  });

  it('names the model that answered', async () => {
    expect(endOf(await partsOf(streams(chunks(so, stop)))).model).toBe('small-2026');
    const silent = streams('data: {"choices":[{"delta":{"content":"So"},"finish_reason":"stop"}]}\n\n');
    expect(endOf(await partsOf(silent, { model: 'large' })).model).toBe('large');
  });

  it('has the usage wherever it is, and none that was not reported', async () => {
    const usages: readonly (readonly [object, object])[] = [
      [
        { choices: [], usage: { prompt_tokens: 7, completion_tokens: 3 } },
        { inputTokens: 7, outputTokens: 3 },
      ],
      [{ usage: { input_tokens: 7, output_tokens: 3 } }, { inputTokens: 7, outputTokens: 3 }],
      [{ x_groq: { usage: { prompt_tokens: 7 } } }, { inputTokens: 7, outputTokens: null }],
      [{ choices: [{ index: 0, delta: {}, usage: { prompt_tokens: 7 } }] }, { inputTokens: 7 }],
      [{ usage: { prompt_tokens: 7, prompt_cache_hit_tokens: 2 } }, { cachedInputTokens: 2 }],
      [{ usage: { prompt_tokens: '7', completion_tokens: 1.5 } }, NO_USAGE],
      [{ usage: null }, NO_USAGE],
    ];
    for (const [chunk, usage] of usages) {
      expect(endOf(await partsOf(streams(chunks(so, stop, chunk)))).usage).toMatchObject(usage);
    }
  });

  it('of blanks has no text', async () => {
    const parts = await partsOf(streams(chunks(delta({ content: '\n' }), delta({ content: ' ' }), stop)));
    expect(parts).toMatchObject([{ type: 'finish', reason: 'stop' }]);
    const led = await partsOf(streams(chunks(delta({ content: '\n' }), so, stop)));
    expect(led[0]).toEqual({ type: 'text', text: '\nSo' });
  });
});
