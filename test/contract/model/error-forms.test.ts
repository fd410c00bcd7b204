/* The forms in which endpoints report errors: each is from a documented or reported endpoint. */
import { describe, expect, it } from 'vitest';

import { type Answer, chunks, delta, refuses, says, streams } from '#test/support/model-server.ts';

import { endOf, so, stop, textOf, useScriptedEndpoint } from './scripted-endpoint.ts';

const { model, partsOf, server } = useScriptedEndpoint();

describe('an error in a stream', () => {
  const error = (members: object) => streams(chunks(delta({ reasoning_content: 'Hm.' }), { error: members }));
  it.each([
    [{ code: 429, message: 'slow down' }, 'rate_limited'],
    [{ type: 'overloaded_error', message: 'Overloaded' }, 'unavailable'],
    [{ code: 'rate_limit_exceeded', message: 'slow down' }, 'rate_limited'],
    [{ status: 'RESOURCE_EXHAUSTED', message: 'quota' }, 'rate_limited'],
    [{ type: 'invalid_request_error', message: 'no' }, 'refused'],
    [{ code: '401', message: 'no' }, 'unauthorized'],
    [{ message: 'something' }, 'unavailable'],
  ])('%j is what its status would be', async (members, reason) => {
    expect((await partsOf(error(members), {}, model({ maxAttempts: 1 }))).at(-1)).toMatchObject({
      type: 'error',
      reason,
    });
  });

  it.each([
    ['of the choice', chunks({ choices: [{ index: 0, delta: {}, error: { code: 502 }, finish_reason: 'error' }] })],
    ['as a reason', chunks(delta({}, 'error'))],
    ['as an event', 'event: error\ndata: {"message":"overloaded"}\n\n'],
    ['as a sentence', chunks({ error: 'overloaded' })],
    ['as an object', chunks({ object: 'error', message: 'overloaded', code: 503 })],
    ['as a detail', chunks({ detail: 'overloaded' })],
  ])('%s is one', async (_what, text) => {
    const parts = await partsOf(streams(text), {}, model({ maxAttempts: 1 }));
    expect(parts).toMatchObject([{ type: 'error', reason: 'unavailable' }]);
  });

  it('is retried while there is no text, and its tokens are counted', async () => {
    const failing = streams(
      chunks(
        delta({ reasoning_content: 'Hm.' }),
        { usage: { prompt_tokens: 5, completion_tokens: 1 } },
        { error: { code: 503 } },
      ),
    );
    const whole = streams(
      chunks(delta({ reasoning: 'Aha.' }), so, stop, { usage: { prompt_tokens: 5, completion_tokens: 2 } }),
    );
    const parts = await partsOf([failing, whole]);
    expect(parts.map(({ type }) => type)).toEqual(['reasoning', 'restart', 'reasoning', 'text', 'finish']);
    expect(endOf(parts).usage).toMatchObject({ inputTokens: 10, outputTokens: 3 });
  });

  it('after text ends the answer, with the tokens so far', async () => {
    const failing = streams(
      chunks(so, { usage: { prompt_tokens: 5, completion_tokens: 1 } }, { error: { code: 429 } }),
    );
    expect(await partsOf([failing, says({ text: ['All'] })])).toMatchObject([
      { type: 'text' },
      { type: 'error', reason: 'rate_limited', usage: { inputTokens: 5 } },
    ]);
    expect(server().requests).toHaveLength(1);
  });
});

describe('a wait that an endpoint asks for', () => {
  it.each(['soon', '-1', '', 'tomorrow 1', '1e9'])('as %j cannot be read, and is its own then', async (value) => {
    const parts = await partsOf([refuses(429, { 'retry-after': value }), says({ text: ['So'] })]);
    expect(parts.map(({ type }) => type)).toEqual(['text', 'finish']);
  });

  it('in milliseconds that are empty is none', async () => {
    const parts = await partsOf([refuses(429, { 'retry-after-ms': '', 'retry-after': '0' }), says({ text: ['So'] })]);
    expect(textOf(parts)).toBe('So');
  });
});

describe('what the endpoint said', () => {
  it.each([
    [{ error: { message: 'bad thing' } }, 'status 400: bad thing'],
    [{ error: 'bad thing' }, 'status 400: bad thing'],
    [{ detail: [{ loc: ['body', 'x'], msg: 'bad thing', input: 'huge' }] }, 'status 400: bad thing'],
    [[{ error: { message: 'bad thing' } }], 'status 400: bad thing'],
    [
      { error: { message: 'Provider returned error', metadata: { raw: '{"message":"bad thing"}' } } },
      'status 400: Provider returned error bad thing',
    ],
    ['bad thing', 'status 400: bad thing'],
  ])('%j is for administrators', async (said, detail) => {
    const answer: Answer = (response) => void response.writeHead(400).end(JSON.stringify(said));
    expect((await partsOf(answer)).at(-1)).toMatchObject({ type: 'error', reason: 'refused', detail });
  });

  it('loses the key', async () => {
    const end = (await partsOf(refuses(401, {}, 'Incorrect API key provided: secret-key.'))).at(-1);
    expect(end).toMatchObject({ detail: 'status 401: Incorrect API key provided: [redacted].' });
  });
});
