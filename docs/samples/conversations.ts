/* What the people and the assistants of the samples say. The shop, its customers and its troubles are made up. */

interface Case {
  readonly topic: string;
  readonly ask: readonly string[];
  readonly tool: string;
  readonly args: (order: number) => Record<string, unknown>;
  readonly result: (order: number) => Record<string, unknown>;
  readonly answer: (order: number) => string;
  readonly thanks: string;
  readonly close: string;
}

const CASES: readonly Case[] = [
  {
    topic: 'late parcel',
    ask: ['My parcel should have been here on Tuesday. Where is it?', 'Still nothing from the courier. Can you look?'],
    tool: 'track_shipment',
    args: (order) => ({ order_id: order, carrier: 'northline' }),
    result: (order) => ({ order_id: order, status: 'held_at_depot', depot: 'Bremen', since: '2026-03-02' }),
    answer: (order) =>
      `Order ${order} is held at the depot in Bremen because the label was torn. They relabel it today.`,
    thanks: 'Good to know. Will I get a new tracking number?',
    close: 'No, the old number stays valid; it starts moving again tomorrow morning.',
  },
  {
    topic: 'double charge',
    ask: ['You charged my card twice for the same kettle!', 'Two payments for one order, please check.'],
    tool: 'list_payments',
    args: (order) => ({ order_id: order }),
    result: (order) => ({
      order_id: order,
      payments: [
        { amount: '39.90', state: 'captured' },
        { amount: '39.90', state: 'authorized' },
      ],
    }),
    answer: (order) =>
      `For order ${order} one payment of 39.90 went through. The second is only a reservation that your bank drops by itself.`,
    thanks: 'How long does that take? It is the end of the month.',
    close: 'Three working days at most. I have asked the bank to release it early.',
  },
  {
    topic: 'wrong size',
    ask: ['The boots are a 41, I ordered a 43.', 'You sent the wrong size, the box says 43 but the shoes do not.'],
    tool: 'create_exchange',
    args: (order) => ({ order_id: order, sku: 'BOOT-OAK-43', reason: 'wrong_item' }),
    result: (order) => ({ exchange_id: `X-${order}`, label: 'sent', in_stock: true }),
    answer: (order) =>
      `Sorry about that. Exchange X-${order} is set up; the label for the way back is in your mail, and the 43 ships today.`,
    thanks: 'Do I have to pay for the return?',
    close: 'No, the label is paid. Any parcel shop takes it.',
  },
  {
    topic: 'invoice address',
    ask: [
      'Our invoice has the old street on it. Accounting sends it back.',
      'Can you change the address on the invoice?',
    ],
    tool: 'reissue_invoice',
    args: (order) => ({ order_id: order, address: { street: 'Lindenweg 8', city: 'Kassel' } }),
    result: (order) => ({ invoice: `R-${order}-2`, replaces: `R-${order}-1` }),
    answer: (order) => `Invoice R-${order}-2 with Lindenweg 8 replaces the first one. Both are in your account as PDF.`,
    thanks: 'Perfect, accounting is happy.',
    close: 'I saved the address, so the next ones come out right.',
  },
  {
    topic: 'discount code',
    ask: ['SPRING15 does not work in my basket.', 'The code from your newsletter is refused, why?'],
    tool: 'check_code',
    args: (order) => ({ code: 'SPRING15', basket: order }),
    result: () => ({ valid: false, why: 'minimum_not_met', minimum: '50.00', basket_total: '47.20' }),
    answer: () =>
      'The code needs a basket of 50.00, yours is at 47.20. A pack of filters for 4.90 would get you there, and below what you pay now.',
    thanks: 'Ha, alright, filters it is.',
    close: 'The code took it: 44.29 in all. Have fun with it!',
  },
  {
    topic: 'broken mug',
    ask: ['One of the four mugs came in pieces 😕', 'A mug is broken; the box looked fine from outside.'],
    tool: 'open_claim',
    args: (order) => ({ order_id: order, item: 'MUG-SET-4', damage: 'broken', pieces: 1 }),
    result: (order) => ({ claim: `C-${order}`, decision: 'replace', photos_needed: false }),
    answer: (order) =>
      `That is a pity. Claim C-${order} is accepted without photos, and one new mug leaves the warehouse tonight.`,
    thanks: 'Should I send the shards back?',
    close: 'Please throw them away carefully; nobody needs them here.',
  },
  {
    topic: 'login',
    ask: ['I never get the mail to reset my password.', 'The reset link says expired, each time.'],
    tool: 'find_account',
    args: (order) => ({ customer: `K${order}`, check: ['mail', 'locks'] }),
    result: () => ({ mail_state: 'bounced', locked: false, last_login: '2025-11-18' }),
    answer: () =>
      'Mails to your address bounce since November: the mailbox was full. I lifted the block, so the next link will arrive.',
    thanks: 'It did, I am in. Can I use another address from now on?',
    close: 'Yes, under Account > Contact; the new one has to be confirmed once.',
  },
  {
    topic: 'spare part',
    ask: ['Is there a new lid for the 1.2 litre jug?', 'I need a gasket for the espresso pot, model from 2019.'],
    tool: 'search_parts',
    args: (order) => ({ query: 'lid jug 1.2', limit: 3, customer: order }),
    result: () => ({
      hits: [
        { sku: 'LID-12-B', price: '6.50', stock: 14 },
        { sku: 'LID-12-W', price: '6.50', stock: 0 },
      ],
    }),
    answer: () => 'There is: LID-12-B in black for 6.50, fourteen on the shelf. The white one is sold out until May.',
    thanks: 'Black is fine. Does it fit the model with the steel handle?',
    close: 'It fits both handles. The glass one has another thread, in case you have that.',
  },
];

const PEOPLE = [
  { id: 'U01ADA', name: 'ada', real: 'Ada Brandt', email: 'ada@example.com' },
  { id: 'U02BEN', name: 'ben', real: 'Ben Okafor', email: 'ben@example.com' },
  { id: 'U03CLEO', name: 'cleo', real: 'Cleo Martin', email: null },
  { id: 'U04DEV', name: 'dev', real: 'Dev Rao', email: 'dev@example.com' },
] as const;
const CHANNELS = [
  { id: 'C01SUPPORT', name: 'support', purpose: 'Customers who wait for an answer' },
  { id: 'C02WAREHOUSE', name: 'warehouse', purpose: 'What is on the shelf, and what should be' },
  { id: 'C03RANDOM', name: 'random', purpose: 'Lunch, mostly' },
] as const;
const CHAT = [
  'Who has the key to the returns cage? It is not on its hook.',
  'The label printer eats every third label again. I turned it off and on; now it is every fourth.',
  'Counted the kettles twice: 61, the system says 58. I am not complaining.',
  'Soup in the kitchen, the red one is hot, the other one is <hot> &amp; very hot.',
  'Reminder: stocktaking on Friday, we close at three. See <https://example.com/plan|the plan>.',
  'Northline comes an hour later today, so nothing is lost for those who are late with packing.',
  'Could somebody look at the reviews of the new jug? Two people write that the lid drips.',
  'The new starter is here on Monday. <#C03RANDOM|random> for the cake list!',
  'We are out of the small boxes. The middle ones are ordered, the small ones come next week.',
  'Nice feedback from Kassel: "fastest exchange ever". That was the night shift 👏',
] as const;

function pick<T>(list: readonly T[], index: number): T {
  const found = list[index % list.length];
  if (found === undefined) throw new TypeError('an empty list');
  return found;
}

interface OpenaiConversation {
  readonly id: string;
  readonly created_at: string;
  readonly messages: readonly Record<string, unknown>[];
}

/** The `index`-th talk of a customer with the assistant; those of different numbers differ. */
export function assistantConversation(index: number): OpenaiConversation {
  const one = pick(CASES, index);
  const order = 48_000 + index * 7;
  const call = {
    id: `call_${index}_1`,
    type: 'function',
    function: { name: one.tool, arguments: JSON.stringify(one.args(order)) },
  };
  const stock = {
    id: `call_${index}_2`,
    type: 'function',
    function: { name: 'customer_notes', arguments: JSON.stringify({ order_id: order }) },
  };
  const twoCalls = index % 3 === 0;
  const messages: Record<string, unknown>[] = [
    {
      role: 'system',
      content: 'You help the customers of a shop for kitchens. Be brief, and look things up before you answer.',
    },
    { role: 'user', content: `${pick(one.ask, index >> 3)} (order ${order})` },
    {
      role: 'assistant',
      content: index % 2 === 0 ? null : 'One moment, I am looking.',
      tool_calls: twoCalls ? [call, stock] : [call],
    },
    { role: 'tool', tool_call_id: call.id, content: JSON.stringify(one.result(order)) },
    ...(twoCalls ? [{ role: 'tool', tool_call_id: stock.id, content: `no notes on ${order}` }] : []),
    { role: 'assistant', content: one.answer(order) },
    {
      role: 'user',
      content:
        index % 5 === 0
          ? [
              { type: 'text', text: one.thanks },
              { type: 'image_url', image_url: { url: `https://example.com/photos/${order}.jpg` } },
            ]
          : one.thanks,
    },
    { role: 'assistant', content: one.close },
  ];
  return { id: `talk-${index}`, created_at: new Date(Date.UTC(2026, 2, 2, 8, index)).toISOString(), messages };
}

/** Files of a Slack export with about as many messages, by their paths. */
export function slackExport(count: number): Map<string, unknown> {
  const files = new Map<string, unknown>([
    [
      'users.json',
      [
        ...PEOPLE.map(slackUser),
        { id: 'U09BOT', name: 'parcelbot', is_bot: true, profile: { real_name: 'Parcel Bot' } },
      ],
    ],
    [
      'channels.json',
      CHANNELS.map(({ id, name, purpose }) => ({
        id,
        name,
        members: PEOPLE.map((one) => one.id),
        purpose: { value: purpose },
      })),
    ],
  ]);
  let written = 0;
  for (let day = 0; written < count; day++) {
    const date = new Date(Date.UTC(2026, 2, 2 + day));
    for (const [index, { name }] of CHANNELS.entries()) {
      const messages = slackDay(day, index, date.getTime() / 1_000 + 8 * 3_600);
      written += messages.length;
      files.set(`${name}/${date.toISOString().slice(0, 10)}.json`, messages);
    }
  }
  return files;
}

function slackUser({ id, name, real, email }: (typeof PEOPLE)[number]): object {
  return {
    id,
    name,
    is_bot: false,
    profile: { real_name: real, display_name: name, ...(email !== null && { email }) },
  };
}

function slackDay(day: number, channel: number, start: number): object[] {
  const messages: object[] = [];
  let second = start + channel * 60;
  const next = (): string => `${(second += 97)}.${String(100 + messages.length).padStart(6, '0')}`;
  const say = (who: number, text: string, more: object = {}): string => {
    const ts = next();
    messages.push({ type: 'message', user: pick(PEOPLE, who).id, text, ts, ...more });
    return ts;
  };
  if (day === 0)
    for (const who of PEOPLE.keys())
      say(who, `<@${pick(PEOPLE, who).id}> has joined the channel`, { subtype: 'channel_join' });
  for (let talk = 0; talk < 3; talk++) {
    const number = day * 9 + channel * 3 + talk;
    if (channel !== 0) {
      say(number, pick(CHAT, number + day));
      continue;
    }
    const one = pick(CASES, number);
    const order = 51_000 + number * 3;
    const root = say(
      number,
      `Customer of order ${order}: "${pick(one.ask, number)}" <@${pick(PEOPLE, number + 1).id}> can you take it?`,
    );
    say(number + 1, 'On it.', { thread_ts: root });
    const bot = { subtype: 'bot_message', bot_id: 'B09BOT', username: 'Parcel Bot', user: undefined };
    say(0, `\`${one.tool}\` says: ${JSON.stringify(one.result(order)).replaceAll('&', '&amp;')}`, {
      ...bot,
      thread_ts: root,
    });
    say(number + 1, `Told them: ${one.answer(order)}`, {
      thread_ts: root,
      edited: { user: 'U01ADA', ts: `${second + 60}.000000` },
    });
    if (number % 4 === 1) {
      const photo = {
        id: `F${order}`,
        name: `order-${order}.jpg`,
        mimetype: 'image/jpeg',
        original_w: 1_280,
        original_h: 960,
        permalink: `https://example.com/files/${order}`,
      };
      say(number, 'They sent a photo.', { thread_ts: root, files: [photo] });
    }
    say(number, one.thanks, { thread_ts: root, reactions: [{ name: 'thumbsup', count: 1, users: ['U02BEN'] }] });
  }
  return messages;
}
