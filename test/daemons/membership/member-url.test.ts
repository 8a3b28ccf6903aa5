import { hostname } from 'node:os';
import { expect, test } from 'vitest';
import { memberUrl } from '../../../src/daemons/membership/member-url.ts';

test.each([
  ['the bound address', 'http://10.0.0.5:4000', {}, 'http://10.0.0.5:4000'],
  ['the name of the machine for all interfaces', 'http://0.0.0.0:4000', {}, `http://${hostname()}:4000`],
  ['the same for IPv6', 'http://[::]:4000', {}, `http://${hostname()}:4000`],
  [
    'SVC_ADVERTISE_URL',
    'http://0.0.0.0:4000',
    { SVC_ADVERTISE_URL: 'https://node-a.internal:8443/' },
    'https://node-a.internal:8443',
  ],
])('other nodes are told %s', (_name, bound, env, expected) => {
  expect(memberUrl(bound, env)).toBe(expected);
});

test.each(['node-a:4000', 'ftp://node-a', ''].filter(Boolean))(
  'the URL %j is refused',
  (SVC_ADVERTISE_URL) => {
    expect(() => memberUrl('http://127.0.0.1:1', { SVC_ADVERTISE_URL })).toThrow(/SVC_ADVERTISE_URL is/);
  },
);
