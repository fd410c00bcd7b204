import { expect, it } from 'vitest';

import { fileTypeOf } from '../document.inputs.ts';

import { isPdf } from './file-type.ts';

const PDF = '%PDF-1.7\n%âãÏÓ\n1 0 obj\n<< >>\nendobj\n';

it.each([
  ['a PDF', PDF, true],
  ['a PDF after white space and a mark', `\uFEFF\r\n ${PDF}`, true],
  ['a PDF after the head of a reply', `HTTP/1.1 200 OK\r\ncontent-type: x/y\r\n\r\n${PDF}`, true],
  ['a PDF after a header of a printer', `\x1B%-12345X@PJL JOB\n${PDF}`, true],
  ['a text about PDF', 'A PDF begins with %PDF-1.7, and then has objects.', false],
  ['a PDF after too many bytes', `${'x'.repeat(2_000)}${PDF}`, false],
  ['nothing', '', false],
])('knows whether %s is a PDF', (_, content, expected) => {
  expect(isPdf(Buffer.from(content, 'latin1'))).toBe(expected);
});

it.each([
  ['text/plain', '', 'a', 'text/plain'],
  ['text/x-markdown', '', '# a', 'text/markdown'],
  ['application/x-pdf', 'a.pdf', PDF, 'application/pdf'],
  ['text/plain', '', PDF, 'application/pdf'],
  ['application/octet-stream', 'notes.md', '# a', 'text/markdown'],
  ['application/octet-stream', 'notes.MD', '# a', 'text/markdown'],
  ['application/octet-stream', 'data.json', '{}', 'application/json'],
  ['binary/octet-stream', 'notes', ' <!DOCTYPE html><p>', 'text/html'],
  ['application/octet-stream', 'notes', 'a < b', 'text/plain'],
  ['application/octet-stream', 'report.pdf', PDF, 'application/pdf'],
  ['application/octet-stream', 'sheet.xlsx', 'PK\x03\x04\0\0', null],
  ['', '', 'text', 'text/plain'],
  ['text/csv', 'a.csv', 'a,b', null],
  ['text/csv', 'a.pdf', PDF, null],
])('reads %s with the name "%s" as its content says', (declared, name, content, expected) => {
  expect(fileTypeOf(declared, name, Buffer.from(content, 'latin1'))).toBe(expected);
});
