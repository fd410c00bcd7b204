import { describe, expect, it } from 'vitest';

import { readPdf } from './pdf.ts';

/** A PDF with one page for each text. */
function pdf(texts: readonly string[], trailer = ''): Uint8Array {
  const pages = texts.map((_, index) => `${4 + 2 * index} 0 R`).join(' ');
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${pages}] /Count ${texts.length} >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    ...texts.flatMap((text, index) => {
      const lines = text.split('\n').map((line) => `(${line}) Tj T*`);
      const stream = `BT /F1 12 Tf 14 TL 72 720 Td ${lines.join(' ')} ET`;
      return [
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents ${5 + 2 * index} 0 R >>`,
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
      truncated: false,
    });
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
