import { describe, expect, it } from 'vitest';

import { readPdf } from './pdf.ts';

/** A PDF with one page for each text. @param annotations of the first page */
function pdf(texts: readonly string[], trailer = '', annotations = ''): Uint8Array {
  const pages = texts.map((_, index) => `${4 + 2 * index} 0 R`).join(' ');
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${pages}] /Count ${texts.length} >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>',
    ...texts.flatMap((text, index) => {
      const lines = text.split('\n').map((line) => `(${line}) Tj T*`);
      const stream = `BT /F1 12 Tf 14 TL 72 720 Td ${lines.join(' ')} ET`;
      return [
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents ${5 + 2 * index} 0 R /Annots [${index === 0 ? annotations : ''}] >>`,
        `<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`,
      ];
    }),
  ];
  let file = '%PDF-1.4\n';
  const offsets = objects.map((object, index) => {
    const offset = file.length;
    file += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return offset;
  });
  const table = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('');
  const start = file.length;
  file += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}`;
  file += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R ${trailer} >>\nstartxref\n${start}\n%%EOF\n`;
  return new TextEncoder().encode(file);
}

describe('the text of a PDF', () => {
  it('has a heading for each page that has text', async () => {
    const read = await readPdf(pdf(['First line\nsecond line', '', 'Third page'], '/Info << /Title (A guide) >>'));
    expect(read).toEqual({
      title: 'A guide',
      text: '## Page 1\n\nFirst line\nsecond line\n\n## Page 3\n\nThird page',
      pages: { all: 3, read: 3, withoutText: 1 },
      characters: 32,
      truncated: false,
    });
  });

  const textOf = async (lines: string, annotations?: string) => {
    const { text } = await readPdf(pdf([lines], '', annotations));
    return text.replace('## Page 1\n\n', '');
  };

  it.each([
    ['a divided word', 'inter-\nnational law', 'international law'],
    ['a divided word before others', 'an interna-\ntional law', 'an international law'],
    ['a compound that is written elsewhere', 'self-\nemployed, self-employed', 'self-employed, self-employed'],
    ['a word that is written elsewhere with and without', 're-\nsign resign re-sign', 'resign resign re-sign'],
    [
      'a compound that another line has',
      'price-\ndetermining, price-determining',
      'price-determining, price-determining',
    ],
    ['a hyphen before a conjunction', 'Vor-\nund Nachteile', 'Vor-\nund Nachteile'],
    ['a name', 'Anglo-\nAmerican', 'Anglo-American'],
    ['an abbreviation', 'a PDF-\nfile', 'a PDF-file'],
    ['a letter', 'the X-\nray', 'the X-ray'],
    ['numbers', '2019-\n2020', '2019-2020'],
    ['a dash', 'said -\nand left', 'said -\nand left'],
    ['a soft hyphen', 'inter\\255\nnational', 'international'],
  ])('holds %s whole', async (_, lines, text) => {
    expect(await textOf(lines)).toBe(text);
  });

  it.each(['# comment', '| a | b |', '- minus', '---', '> quote', '===', '~~~ code'])(
    'is not Markdown: %s',
    async (line) => {
      expect(await textOf(`before\n${line}`)).toBe(`before\n\\${line}`);
    },
  );

  it('takes no longer for a word of 200,000 letters', async () => {
    const parts = Array.from({ length: 200 }, () => 'a'.repeat(1_000));
    // Within the parentheses of the builder: a font so small that all of the word is on the page.
    const text = await textOf(`inter-\nnational ) Tj /F1 0.0001 Tf (${parts.join(') Tj (')}`);
    expect(text.startsWith('international')).toBe(true);
    expect(text.endsWith(parts.join(''))).toBe(true);
  });

  it('has numbered lines', async () => {
    expect(await textOf('1. first\n2. second')).toBe('1. first\n2. second');
  });

  const field = (name: string, members: string) =>
    `<< /Type /Annot /Subtype /Widget /Rect [0 0 9 9] /T (${name}) ${members} >>`;

  it.each([
    ['a text', field('name', '/FT /Tx /V (Grace)'), 'name: Grace'],
    ['a text with a description', field('n', '/TU (Full name) /FT /Tx /V (Grace\nHopper)'), 'Full name: Grace Hopper'],
    ['a choice', field('city', '/FT /Ch /Opt [(Rome) (Bonn)] /V (Rome)'), 'city: Rome'],
    ['a check box', field('agreed', '/FT /Btn /V /Yes /AS /Yes /AP << /N << /Yes 3 0 R >> >>'), 'agreed: Yes'],
    ['a free text', '<< /Type /Annot /Subtype /FreeText /Rect [0 0 9 9] /Contents (Typed) /DA (/F 9 Tf) >>', 'Typed'],
  ])('ends with the value of %s', async (_, annotation, text) => {
    expect(await textOf('Form', annotation)).toBe(`Form\n${text}`);
  });

  it.each([
    ['an empty field', field('name', '/FT /Tx /V ()')],
    ['a password', field('pin', '/FT /Tx /Ff 8192 /V (4711)')],
    ['a hidden field', field('name', '/F 2 /FT /Tx /V (x)')],
    ['a box that is not checked', field('agreed', '/FT /Btn /V /Off /AS /Off /AP << /N << /Yes 3 0 R >> >>')],
    ['a button', field('send', '/FT /Btn /Ff 65536 /V (x)')],
    ['a comment beside the page', '<< /Type /Annot /Subtype /Text /Rect [0 0 9 9] /Contents (note) >>'],
  ])('is without %s', async (_, annotation) => {
    expect(await textOf('Form', annotation)).toBe('Form');
  });

  it('is not read when it needs a password', async () => {
    const key = '5'.repeat(64);
    const id = `/ID [<${'0'.repeat(32)}> <${'0'.repeat(32)}>]`;
    const encrypted = pdf(['x'], `/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <${key}> /U <${key}> >> ${id}`);
    await expect(readPdf(encrypted)).rejects.toMatchObject({
      reason: 'encrypted',
      message: 'The PDF is protected by a password',
    });
  });

  it.each([
    ['nothing', new Uint8Array()],
    ['text', new TextEncoder().encode('hello')],
    ['a PDF without objects', new TextEncoder().encode('%PDF-1.7\n%%EOF')],
    ['a PDF that is cut off', pdf(['text']).slice(0, 60)],
  ])('is not read from %s', async (_, bytes) => {
    await expect(readPdf(bytes)).rejects.toMatchObject({
      reason: 'unreadable',
      message: 'The file is not a readable PDF',
    });
  });

  it('leaves the bytes as they are', async () => {
    const bytes = pdf(['text']);
    await readPdf(bytes);
    expect(bytes.length).toBeGreaterThan(0);
  });
});
