import { hostname } from 'node:os';
import { expect, test } from 'vitest';
import { memberUrl } from '../../../src/daemons/membership/member-url.ts';

const ADVERTISED = { SVC_ADVERTISE_URL: 'https://node-a.internal:8443/' };
const alone = (host: string) => ({ host, port: 4000, sharesPort: false });
const oneOf = (host: string) => ({ host, port: 4000, sharesPort: true });

test.each([
  ['the bound address', alone('10.0.0.5'), {}, 'http://10.0.0.5:4000'],
  ['a bound IPv6 address', alone('fd00::5'), {}, 'http://[fd00::5]:4000'],
  ['the name of the machine for all interfaces', alone('0.0.0.0'), {}, `http://${hostname()}:4000`],
  ['the same for IPv6', alone('::'), {}, `http://${hostname()}:4000`],
  ['SVC_ADVERTISE_URL', alone('0.0.0.0'), ADVERTISED, 'https://node-a.internal:8443'],
  [
    'the advertised host with the own port of a process',
    oneOf('0.0.0.0'),
    ADVERTISED,
    'http://node-a.internal:4000',
  ],
  [
    'the loopback address of a process without other nodes',
    oneOf('127.0.0.1'),
    ADVERTISED,
    'http://127.0.0.1:4000',
  ],
])('other members are told %s', (_name, address, env, expected) => {
  expect(memberUrl(address, env)).toBe(expected);
});

test.each(['node-a:4000', 'ftp://node-a', ''].filter(Boolean))(
  'the URL %j is refused',
  (SVC_ADVERTISE_URL) => {
    expect(() => memberUrl(alone('10.0.0.5'), { SVC_ADVERTISE_URL })).toThrow(/SVC_ADVERTISE_URL is/);
  },
);
