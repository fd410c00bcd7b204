import { expect, test } from 'vitest';
import { AllowedMethods } from './unservable.ts';

const allowed = new AllowedMethods();
allowed.add('GET', '/things/:id');
allowed.add('PATCH', '/things/:id');
allowed.add('GET', '/things');
allowed.add('POST', '/things/uploads');
allowed.add('GET', '/files/*');
allowed.add('GET', '/openapi.json');

test.each([
  ['/things', ['GET']],
  ['/things/1', ['GET', 'PATCH']],
  ['/things/uploads', ['POST']],
  ['/things/1?a=/b', ['GET', 'PATCH']],
  ['/files/a/b', ['GET']],
  ['/openapi.json', ['GET']],
  ['/openapixjson', []],
  ['/things/', []],
  ['/things/1/2', []],
  ['/other', []],
])('%s takes %j', (url, methods) => expect(allowed.of(url)).toEqual(methods));
