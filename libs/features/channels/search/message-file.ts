/* The index of one organization's messages: its file, what of it is in memory, and how changes of channels are written. */
import { admitText } from '#libs/kernel/text.ts';
import { enlarged, IndexFile, TermWriter, wordsOf } from '#libs/platform/textindex/index.ts';

import { MAX_TEXT, type MessageChange } from './message-text.ts';

/** Of the tables, of the words that texts consist of, and of how events become rows. */
const VERSION = 1;

/*
 * - `progress`: the number of the last transaction that changed the file.
 * - `channel`: `revision` and `event` are those of the last event of its stream that the index reflects.
 * - `message`: the words of a message as it was posted, and one row more for each edit. Rows are never removed: a row is
 *   withdrawn by the transaction in which the message was edited or deleted. Texts are not stored.
 * - `draft`: the text of an interaction that is not complete.
 * Times are in Unix milliseconds.
 */
const TABLES = `
  create table progress (number integer not null);
  insert into progress values (0);
  create table channel (
    channel integer primary key, id text not null unique, revision integer not null, event text not null, changed integer not null
  );
  create index channel_changed on channel (changed);
  create table message (
    row integer primary key, channel integer not null, sequence integer not null, at real not null, words integer not null, withdrawn integer
  );
  create index message_current on message (channel, sequence) where withdrawn is null;
  create index message_withdrawn on message (withdrawn) where withdrawn is not null;
  create table draft (channel integer not null, sequence integer not null, at real not null, text text not null, primary key (channel, sequence)) without rowid;
`;

/** Of a text in words, and of a word in a text. */
const MAX_WORDS = 65_535;
const MAX_COUNT = 255;

/** Errors: those of SQLite. */
export function openMessageFile(path: string): IndexFile {
  return new IndexFile(path, { version: VERSION, tables: TABLES });
}

/** Changes of one channel, by consecutive events of its stream. */
export interface ChannelChanges {
  readonly channelId: string;
  /** Revision of the last event before these; -1 for none. */
  readonly after: number;
  readonly revision: number;
  /** Id of the last event. */
  readonly event: string;
  readonly changes: readonly MessageChange[];
  /** The stream was deleted or truncated: nothing of the channel is found any longer. */
  readonly isGone?: boolean;
}

/** Writes the changes in one transaction. Does nothing if another process was faster. */
export function writeChanges(file: IndexFile, { channelId, after, revision, event, ...made }: ChannelChanges): void {
  file.write(() => {
    const known = file.row('select channel, revision from channel where id = ?', channelId);
    if (Number(known?.[1] ?? -1) !== after && made.isGone !== true) return;
    const number = Number(file.row('select number from progress')?.[0]) + 1;
    const channel =
      known === undefined
        ? file.run(
            'insert into channel (id, revision, event, changed) values (?, ?, ?, ?)',
            channelId,
            revision,
            event,
            number,
          )
        : Number(known[0]);
    const sql = 'update channel set revision = ?, event = ?, changed = ? where channel = ?';
    file.run(sql, revision, event, number, channel);
    new ChannelWriter(file, { channel, number }).write(made);
    file.run('update progress set number = ?', number);
  });
}

class ChannelWriter {
  readonly #file: IndexFile;
  readonly #channel: number;
  /** Of the transaction. */
  readonly #number: number;
  readonly #terms: TermWriter;

  constructor(file: IndexFile, { channel, number }: { readonly channel: number; readonly number: number }) {
    this.#file = file;
    this.#channel = channel;
    this.#number = number;
    this.#terms = new TermWriter(file, Number(file.row('select coalesce(max(row), -1) from message')?.[0]) + 1);
  }

  write({ changes, isGone }: Pick<ChannelChanges, 'changes' | 'isGone'>): void {
    if (isGone === true) {
      const sql = 'update message set withdrawn = ? where channel = ? and withdrawn is null';
      this.#file.run(sql, this.#number, this.#channel);
      this.#file.run('delete from draft where channel = ?', this.#channel);
    }
    for (const change of changes) this.#apply(change);
    this.#terms.flush();
  }

  #apply(change: MessageChange): void {
    const { kind, sequence } = change;
    if (kind === 'posted' || kind === 'replaced') {
      if (kind === 'replaced') this.#withdraw(sequence);
      this.#add(sequence, change.atMs, change.text);
      return;
    }
    if (kind === 'begun') {
      const sql = 'insert or replace into draft (channel, sequence, at, text) values (?, ?, ?, ?)';
      this.#file.run(sql, this.#channel, sequence, change.atMs, change.text);
      return;
    }
    const sql = 'select at, text from draft where channel = ? and sequence = ?';
    const draft = this.#file.row(sql, this.#channel, sequence);
    // An interaction that search does not find, or one that is complete.
    if (draft === undefined) return;
    const [at, text] = [Number(draft[0]), String(draft[1])];
    if (kind === 'added') {
      const longer = [text, change.text].filter((one) => one !== '').join('\n');
      const update = 'update draft set text = ? where channel = ? and sequence = ?';
      this.#file.run(update, admitText(longer, MAX_TEXT), this.#channel, sequence);
      return;
    }
    this.#file.run('delete from draft where channel = ? and sequence = ?', this.#channel, sequence);
    this.#add(sequence, at, change.text ?? text);
  }

  #withdraw(sequence: number): void {
    const sql = 'update message set withdrawn = ? where channel = ? and sequence = ? and withdrawn is null';
    this.#file.run(sql, this.#number, this.#channel, sequence);
  }

  #add(sequence: number, atMs: number, text: string): void {
    const words = wordsOf(text);
    if (words.length === 0) return;
    const row = this.#terms.nextRow();
    const sql = 'insert into message (row, channel, sequence, at, words) values (?, ?, ?, ?, ?)';
    this.#file.run(sql, row, this.#channel, sequence, atMs, Math.min(words.length, MAX_WORDS));
    const counts = new Map<string, number>();
    for (const word of words) counts.set(word, Math.min(MAX_COUNT, (counts.get(word) ?? 0) + 1));
    this.#terms.add(row, counts);
  }
}

/** Of columns: an index of a million messages must not take the memory of two. */
const GROWTH = 1.25;

export interface KnownChannel {
  readonly channel: number;
  readonly revision: number;
  readonly event: string;
}

/** Memory of an entry of `channels`, with its id and the id of its event. */
const CHANNEL_BYTES = 300;

/** The columns of all messages that queries read, in memory: 19 bytes for each message. Brought up to date from the file. */
export class MessageColumns {
  /** Of the last transaction that is part of it. */
  #number = 0;
  rows = 0;
  /** By row. */
  channel = new Int32Array();
  sequence = new Int32Array();
  atMs = new Float64Array();
  words = new Uint16Array();
  isCurrent = new Uint8Array();
  /** By id. */
  readonly channels = new Map<string, KnownChannel>();
  /** By key. */
  readonly channelIds: string[] = [];

  get bytes(): number {
    const columns = [this.channel, this.sequence, this.atMs, this.words, this.isCurrent];
    return columns.reduce((sum, { byteLength }) => sum + byteLength, this.channels.size * CHANNEL_BYTES);
  }

  /** Call it in a transaction, so that later reads in it see the same state. */
  refresh(file: IndexFile): void {
    const number = Number(file.row('select number from progress')?.[0]);
    if (number === this.#number) return;
    const since = this.#number;
    const changed = 'select channel, id, revision, event from channel where changed > ?';
    for (const [key, id, revision, event] of file.rows(changed, since)) {
      const channel = Number(key);
      this.channelIds[channel] = String(id);
      this.channels.set(String(id), { channel, revision: Number(revision), event: String(event) });
    }
    const [count] = file.row('select coalesce(max(row), -1) + 1 from message') ?? [];
    this.#reserve(Number(count));
    const added = 'select row, channel, sequence, at, words from message where row >= ? order by row';
    for (const [key, channel, sequence, at, words] of file.rows(added, this.rows)) {
      const row = Number(key);
      this.channel[row] = Number(channel);
      this.sequence[row] = Number(sequence);
      this.atMs[row] = Number(at);
      this.words[row] = Number(words);
      this.isCurrent[row] = 1;
    }
    this.rows = Number(count);
    for (const [row] of file.rows('select row from message where withdrawn > ?', since))
      this.isCurrent[Number(row)] = 0;
    this.#number = number;
  }

  #reserve(size: number): void {
    this.channel = enlarged(this.channel, size, GROWTH);
    this.sequence = enlarged(this.sequence, size, GROWTH);
    this.atMs = enlarged(this.atMs, size, GROWTH);
    this.words = enlarged(this.words, size, GROWTH);
    this.isCurrent = enlarged(this.isCurrent, size, GROWTH);
  }
}
