/** Events of a channel as lines of text, with the names of its participants. */
import type { ChannelEvent, ChannelParticipant, EventActor, Interaction } from '#libs/client/src/index.ts';

type Participant = Interaction['participant'];
type Content = Interaction['content'][number];

/** Adds terminal codes to a text, or nothing where the output is not a terminal. */
type Paint = (text: string, style: Style) => string;
type Style = 'dim' | 'bold' | 'red' | 'green' | 'cyan';

const CODES: Readonly<Record<Style, number>> = { dim: 2, bold: 1, red: 31, green: 32, cyan: 36 };
export const plain: Paint = (text) => text;
export const coloured: Paint = (text, style) => `\u{1b}[${CODES[style]}m${text}\u{1b}[0m`;

/** Width of time, sequence and name; the further lines of a text are indented by it. */
const SEQUENCE_WIDTH = 6;
const NAME_WIDTH = 16;

export class TailLines {
  readonly #paint: Paint;
  readonly #names = new Map<string, string>();
  /** Names of the senders of incomplete interactions. */
  readonly #writers = new Map<string, string>();

  constructor(paint: Paint) {
    this.#paint = paint;
  }

  /** Remembers the names of participants. */
  learn(participants: readonly ChannelParticipant[]): void {
    for (const participant of participants) {
      if (participant.type === 'authenticated_user') this.#names.set(participant.user_id, participant.display_name);
      if (participant.type === 'agent' && participant.name !== '') this.#names.set(participant.id, participant.name);
    }
  }

  /** The line of an event, without the line feed at its end. */
  event(event: ChannelEvent): string {
    const { who, what, style } = this.#said(event);
    const time = this.#paint(timeOf(event.at), 'dim');
    const sequence = this.#paint(String(event.seq).padStart(SEQUENCE_WIDTH), 'dim');
    const name = this.#paint(cut(oneLine(who), NAME_WIDTH).padEnd(NAME_WIDTH), 'bold');
    const indent = ' '.repeat(timeOf(event.at).length + SEQUENCE_WIDTH + NAME_WIDTH + 6);
    const [first = '', ...others] = what.split('\n').map(printable);
    const text = style === undefined ? first : this.#paint(first, style);
    return [`${time}  ${sequence}  ${name}  ${text}`, ...others.map((line) => indent + line)].join('\n');
  }

  /** A line with the end of a text that is being written. */
  draft(interactionId: string, text: string, columns: number): string {
    const name = cut(oneLine(this.#writers.get(interactionId) ?? ''), NAME_WIDTH);
    const room = Math.max(10, columns - name.length - 4);
    const characters = [...oneLine(text)];
    const end = characters.length > room ? ['…', ...characters.slice(1 - room)] : characters;
    return this.#paint(`${name} ✎ ${end.join('')}`, 'cyan');
  }

  #said(event: ChannelEvent): { readonly who: string; readonly what: string; readonly style?: Style } {
    const who = 'channel';
    const by = this.#by(event.actor ?? null);
    if (event.data === null) return { who: '', what: `(${event.type})`, style: 'dim' };
    switch (event.type) {
      case 'channel.created':
        this.learn(event.data.participants);
        return { who, what: `created${by}: ${event.data.name}`, style: 'green' };
      case 'channel.updated':
        return { who, what: `${changesOf(event)}${by}: ${event.data.name}`, style: 'dim' };
      case 'channel.archived':
        return { who, what: `archived${by}`, style: 'red' };
      case 'participant.joined':
        this.learn([event.data]);
        return { who: this.#member(event.data), what: isItself(event) ? 'joined' : `added${by}`, style: 'green' };
      case 'participant.left':
        return { who: this.#member(event.data), what: isItself(event) ? 'left' : `removed${by}`, style: 'red' };
      case 'file.deleted':
        return { who, what: `deleted${by}: ${event.data.name || event.data.media_id}`, style: 'red' };
      case 'interaction.posted':
        return {
          who: this.#writer(event.data),
          what: textOf(event.data) + (event.actor?.on_behalf_of ? ` [${by.trim()}]` : ''),
        };
      case 'interaction.updated':
        return { who: this.#writer(event.data), what: `… ${textOf(event.data)}` };
      case 'interaction.completed':
        return { who: this.#writer(event.data), what: `✓ ${textOf(event.data)}` };
      case 'interaction.failed':
        return { who: this.#writer(event.data), what: `✗ ${textOf(event.data)}`, style: 'red' };
      case 'interaction.edited':
        return { who: this.#writer(event.data), what: `edited${by}: ${textOf(event.data)}` };
      case 'interaction.deleted':
        return { who: this.#writer(event.data), what: `message deleted${by}`, style: 'red' };
      case 'reaction.added':
      case 'reaction.removed': {
        const { reactor, emoji, interaction_id: id } = event.data;
        const sign = event.type === 'reaction.added' ? '+' : '-';
        return { who: reactor.name ?? this.#names.get(reactor.id) ?? reactor.id, what: `${sign}${emoji} on ${id}` };
      }
      case 'receipt.added':
        return { who: this.#known(event.data.agent_id), what: `has read ${event.data.interaction_id}`, style: 'dim' };
      default:
        return { who: '', what: `(${event.type})`, style: 'dim' };
    }
  }

  /** ` by Ada (key …)`; empty for an event that names no actor. */
  #by(actor: EventActor | null): string {
    if (actor === null) return '';
    const name = actor.type === 'user' ? this.#known(actor.id) : `${actor.type} ${actor.id}`;
    return ` by ${oneLine(name)}${actor.key_id === null ? '' : ` (key ${actor.key_id})`}`;
  }

  #writer({ id, participant, complete }: Interaction): string {
    const name = this.#name(participant);
    if (complete) this.#writers.delete(id);
    else this.#writers.set(id, name);
    return name;
  }

  #member(participant: ChannelParticipant): string {
    switch (participant.type) {
      case 'authenticated_user':
        return participant.display_name;
      case 'agent':
        return participant.name || participant.id;
      case 'external_agent':
        return participant.agent_metadata?.['name'] ?? 'external agent';
      case 'non_authenticated_user':
        return 'visitor';
    }
  }

  #name(participant: Participant): string {
    switch (participant.type) {
      case 'authenticated_user':
        return this.#known(participant.user_id);
      case 'agent':
        return participant.agent_metadata?.['name'] ?? this.#known(participant.agent_id);
      case 'external_agent':
        return participant.agent_metadata?.['name'] ?? 'external agent';
      case 'maybe_user':
        return participant.email;
      case 'non_authenticated_user':
        return 'visitor';
      case 'system':
        return 'system';
    }
  }

  #known(id: string): string {
    return this.#names.get(id) ?? id;
  }
}

/** Whether a participant has joined or left by itself, as far as the event says. */
function isItself({ actor, data }: ChannelEvent & { readonly data: ChannelParticipant | null }): boolean {
  if (actor == null) return true;
  return actor.type === 'user' && data?.type === 'authenticated_user' && data.user_id === actor.id;
}

function changesOf({ changed = [] }: ChannelEvent): string {
  return changed.length === 0 ? 'changed' : `changed ${changed.join(', ')}`;
}

function textOf({ content, content_role: role, parent_span_id: parent, complete }: Interaction): string {
  const below = parent === null ? '' : '↳ ';
  const kind = role === 'user_message' || role === 'agent_response' ? '' : `[${role}] `;
  const text = content.map(contentText).filter(Boolean).join(' ');
  return `${below}${kind}${text}${complete || text !== '' ? '' : '…'}`;
}

function contentText(item: Content): string {
  switch (item.type) {
    case 'text':
      return item.text;
    case 'media':
      return `(${item.meta_data.mime_type} ${item.meta_data.description})`;
    case 'custom_content':
      return item.alt_text ?? `(${item.name})`;
    case 'tool_call':
      return item.display_text ?? `${item.tool_name} ${JSON.stringify(item.tool_args)}`;
    case 'tool_call_result':
      return item.display_text ?? `${item.tool_name}: ${item.status ?? JSON.stringify(item.tool_result)}`;
    default:
      return `(${item.type})`;
  }
}

/** Local time without the date; the JSON output has the full time. */
function timeOf(at: string): string {
  const date = new Date(at);
  const two = (value: number): string => String(value).padStart(2, '0');
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

function cut(text: string, width: number): string {
  const characters = [...text];
  return characters.length > width ? `${characters.slice(0, width - 1).join('')}…` : text;
}

function oneLine(text: string): string {
  return printable(text.replace(/\s+/g, ' '));
}

/** Texts of other users must not control the terminal. */
function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, '\u{FFFD}');
}
