import { describe, expect, it } from 'vitest';

import { parseChatgpt } from './chatgpt.format.ts';
import { BadInput } from './import.model.ts';

const place = { file: 'talks.jsonl', line: 7 };

describe("ChatGPT's conversations", () => {
  const said = (role: string, text: string, more: object = {}) => ({
    author: { role, name: null },
    content: { content_type: 'text', parts: [text] },
    create_time: 1_772_445_600,
    recipient: 'all',
    ...more,
  });
  const mapping = {
    root: { id: 'root', parent: null, children: ['s'], message: null },
    s: { parent: 'root', children: ['q'], message: said('system', '') },
    q: { parent: 's', children: ['new', 'old'], message: said('user', 'How warm?') },
    old: { parent: 'q', children: ['thanks'], message: said('assistant', 'Cold.') },
    thanks: { parent: 'old', children: [], message: said('user', 'Thanks') },
    new: {
      parent: 'q',
      children: ['result'],
      message: said('assistant', '', {
        recipient: 'python',
        content: { content_type: 'code', language: 'unknown', text: 'warm()' },
      }),
    },
    result: {
      parent: 'new',
      children: ['answer'],
      message: said('tool', '', {
        author: { role: 'tool', name: 'python' },
        content: { content_type: 'execution_output', text: '21' },
      }),
    },
    answer: {
      parent: 'result',
      children: [],
      message: said('assistant', '21.', { weight: 1, metadata: { model_slug: 'm' } }),
    },
  };
  const parse = (current: string) =>
    parseChatgpt(
      JSON.stringify({ title: 'Weather', create_time: 1_772_445_600, mapping, current_node: current }),
      place,
    );

  it('keep every branch, the shown one last', () => {
    const { channel, messages, bad } = parse('answer');
    expect(bad).toEqual([]);
    expect(channel.body).toMatchObject({ name: 'Weather', meta_data: { source_format: 'chatgpt' } });
    const parents = new Map(messages.map(({ key, body }) => [key, body.metadata?.['source_id']]));
    expect(
      messages.map(({ parentKey, body }) => [
        body.metadata?.['source_id'],
        parents.get(parentKey ?? ''),
        body.content_role,
        body.metadata?.['source_branch'],
      ]),
    ).toEqual([
      ['q', undefined, 'user_message', undefined],
      ['old', 'q', 'agent_response', 'other'],
      ['thanks', undefined, 'user_message', 'other'],
      ['new', 'q', 'tool_call', undefined],
      ['result', 'new', 'tool_call_result', undefined],
      ['answer', 'q', 'agent_response', undefined],
    ]);
    expect(messages.map(({ body }) => body.metadata?.['source_parent_id'])).toEqual([
      undefined,
      'q',
      'old',
      'q',
      'new',
      'result',
    ]);
    expect(messages[5]?.body.metadata).toMatchObject({
      source_time: '2026-03-02T10:00:00.000Z',
      source_fields: { weight: 1, metadata: { model_slug: 'm' } },
    });
  });

  it('keep edited questions beside each other, each in a turn of its own', () => {
    const edited = {
      ...mapping,
      old: { ...mapping.old, children: ['thanks', 'sure'] },
      sure: { parent: 'old', children: ['yes'], message: said('user', 'Sure?') },
      yes: { parent: 'sure', children: [], message: said('assistant', 'Yes.') },
    };
    const { messages } = parseChatgpt(JSON.stringify({ id: 'c', mapping: edited, current_node: 'yes' }), place);
    const found = messages.map(({ key, parentKey, startsTurn = false }) => [key, parentKey, startsTurn]);
    expect(found.slice(-4)).toEqual([
      ['old 0', 'q 0', false],
      ['thanks 0', 'old 0', true],
      ['sure 0', 'old 0', true],
      ['yes 0', 'sure 0', false],
    ]);
  });

  it('keep edited questions of any number, as roots where the API accepts no deeper ones', () => {
    const count = 200;
    const deep = Object.fromEntries(
      Array.from({ length: count }, (_, n) => [
        [`q${n}`, { parent: n ? `a${n - 1}` : null, children: [`a${n}`], message: said('user', 'q') }],
        [`e${n}`, { parent: n ? `a${n - 1}` : null, children: [], message: said('user', 'e') }],
        [`a${n}`, { parent: `q${n}`, children: [`q${n + 1}`, `e${n + 1}`], message: said('assistant', 'a') }],
      ]).flat(),
    );
    const { messages } = parseChatgpt(JSON.stringify({ id: 'c', mapping: deep }), place);
    expect(messages).toHaveLength(3 * count);
    const depths = new Map<string | null, number>([[null, 0]]);
    for (const { key, parentKey } of messages) depths.set(key, (depths.get(parentKey) ?? NaN) + 1);
    expect(Math.max(...depths.values())).toBeLessThanOrEqual(64);
  });

  it('have the same keys in a later export, where ids identify them', () => {
    const first = parseChatgpt(JSON.stringify({ id: 'c', title: 'a', mapping, current_node: 'answer' }), place);
    const more = {
      ...mapping,
      answer: { ...mapping.answer, children: ['next'] },
      next: { parent: 'answer', children: [], message: said('user', 'And now?') },
    };
    const later = parseChatgpt(
      JSON.stringify({ conversation_id: 'c', title: 'b', mapping: more, current_node: 'next' }),
      { file: 'conversations-003.json', line: 1, item: 9 },
    );
    expect(later.channel.key).toBe(first.channel.key);
    const keys = first.messages.map(({ key }) => key);
    expect(later.messages.map(({ key }) => key)).toEqual([...keys, 'next 0']);
  });

  it('end with the branch that was shown last', () => {
    expect(parse('thanks').messages.at(-1)?.body.metadata).toMatchObject({ source_id: 'thanks' });
  });

  it('are read where nodes are missing, or form a circle', () => {
    const odd = { ...mapping, q: { ...mapping.q, children: ['new', 'gone', 'q'] } };
    const line = JSON.stringify({ mapping: odd, current_node: 'gone' });
    const { messages, bad } = parseChatgpt(line, place);
    expect(messages).toHaveLength(6);
    expect(bad).toEqual([]);
  });

  it('are read where only parents, only children, or neither of them connect the messages', () => {
    const shapes = [
      (node: object) => ({ ...node, children: [] }),
      (node: object) => ({ ...node, parent: null }),
      (node: object) => ({ ...node, parent: null, children: [] }),
      (node: object) => ({ ...node, parent: 'q', children: ['q'] }),
    ];
    for (const shape of shapes) {
      const odd = Object.fromEntries(Object.entries(mapping).map(([id, node]) => [id, shape(node)]));
      const { messages, bad } = parseChatgpt(JSON.stringify({ mapping: odd, current_node: 'answer' }), place);
      const ids = messages.map(({ body }) => String(body.metadata?.['source_id']));
      expect(ids.sort()).toEqual(['answer', 'new', 'old', 'q', 'result', 'thanks']);
      expect(bad).toEqual([]);
    }
  });

  it.each(['{}', '{"mapping": {}}', '{"mapping": {"a": 5}}'])('are refused where they are %s', (line) => {
    expect(() => parseChatgpt(line, place)).toThrow(BadInput);
  });
});
