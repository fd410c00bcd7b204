/**
 * Finds the first syntax error of invalid JSON, with the message and position (in characters) of Python's json module,
 * which FastAPI reports. Runs on refused bodies only, so it is a simple scan. Has no recursion, because nesting is
 * unbounded. See docs/decisions/0052 for why no library does this.
 */
export interface SyntaxFault {
  readonly error: string;
  readonly position: number;
}

interface Scan {
  readonly text: string;
  at: number;
}

class Fault extends Error {
  readonly at: number;
  constructor(message: string, at: number) {
    super(message);
    this.at = at;
  }
}

export function syntaxFaultOf(text: string): SyntaxFault {
  try {
    scanDocument({ text, at: 0 });
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault;
    return { error: fault.message, position: Array.from(text.slice(0, fault.at)).length };
  }
  return { error: 'Expecting value', position: 0 };
}

function scanDocument(scan: Scan): void {
  const open: ('{' | '[')[] = [];
  do {
    skipSpace(scan);
    const opened = openContainer(scan, open);
    if (opened === 'entered') continue;
    if (opened === 'none') scanScalar(scan);
    closeContainers(scan, open);
  } while (open.length > 0);
  skipSpace(scan);
  if (scan.at < scan.text.length) throw new Fault('Extra data', scan.at);
}

/** Enters an object or list, whose first value must follow; skips an empty one. */
function openContainer(scan: Scan, open: ('{' | '[')[]): 'entered' | 'empty' | 'none' {
  const character = scan.text[scan.at];
  if (character !== '{' && character !== '[') return 'none';
  scan.at += 1;
  skipSpace(scan);
  if (scan.text[scan.at] === (character === '{' ? '}' : ']')) {
    scan.at += 1;
    return 'empty';
  }
  open.push(character);
  if (character === '{') scanName(scan);
  return 'entered';
}

/** After a value: skips commas and closing brackets up to the next value or the end. */
function closeContainers(scan: Scan, open: ('{' | '[')[]): void {
  for (let container = open.at(-1); container !== undefined; container = open.at(-1)) {
    skipSpace(scan);
    const character = scan.text[scan.at];
    if (character === ',') {
      scan.at += 1;
      if (container === '{') {
        skipSpace(scan);
        scanName(scan);
      }
      return;
    }
    if (character !== (container === '{' ? '}' : ']')) throw new Fault("Expecting ',' delimiter", scan.at);
    scan.at += 1;
    open.pop();
  }
}

function scanName(scan: Scan): void {
  if (scan.text[scan.at] !== '"') throw new Fault('Expecting property name enclosed in double quotes', scan.at);
  scanString(scan);
  skipSpace(scan);
  if (scan.text[scan.at] !== ':') throw new Fault("Expecting ':' delimiter", scan.at);
  scan.at += 1;
}

const SCALAR = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

function scanScalar(scan: Scan): void {
  if (scan.text[scan.at] === '"') return scanString(scan);
  SCALAR.lastIndex = scan.at;
  if (!SCALAR.test(scan.text)) throw new Fault('Expecting value', scan.at);
  scan.at = SCALAR.lastIndex;
}

function scanString(scan: Scan): void {
  const start = scan.at;
  for (scan.at += 1; ; scan.at += 1) {
    const character = scan.text[scan.at];
    if (character === undefined) throw new Fault('Unterminated string starting at', start);
    if (character < ' ') throw new Fault('Invalid control character at', scan.at);
    if (character === '"') break;
    if (character === '\\') scanEscape(scan, start);
  }
  scan.at += 1;
}

function scanEscape(scan: Scan, start: number): void {
  const escape = scan.text[scan.at + 1];
  if (escape === undefined) throw new Fault('Unterminated string starting at', start);
  if (escape !== 'u') {
    if (!'"\\/bfnrt'.includes(escape)) throw new Fault('Invalid \\escape', scan.at);
    scan.at += 1;
    return;
  }
  if (!/^[0-9a-fA-F]{4}$/.test(scan.text.slice(scan.at + 2, scan.at + 6))) {
    throw new Fault('Invalid \\uXXXX escape', scan.at + 1);
  }
  scan.at += 5;
}

function skipSpace(scan: Scan): void {
  while (scan.at < scan.text.length && ' \t\n\r'.includes(scan.text[scan.at] ?? '')) scan.at += 1;
}
