import { hostname } from 'node:os';
import { expect, test } from 'vitest';
import { isReachable, memberUrl } from '../../../src/daemons/membership/member-url.ts';

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
])('other members are told %s', (_name, own, env, expected) => {
  expect(memberUrl('gateway', { address: { own }, env })).toBe(expected);
});

test.each(['node-a:4000', 'ftp://node-a', ''].filter(Boolean))(
  'the URL %j is refused',
  (SVC_ADVERTISE_URL) => {
    const address = { own: alone('10.0.0.5') };
    expect(() => memberUrl('gateway', { address, env: { SVC_ADVERTISE_URL } })).toThrow(
      /SVC_ADVERTISE_URL is/,
    );
    expect(() => memberUrl('rest', { address, env: {}, advertise: SVC_ADVERTISE_URL })).toThrow(
      /--advertise is/,
    );
  },
);

test('other services use the host of SVC_ADVERTISE_URL with their own port, unless --advertise names a URL', () => {
  const address = { own: { host: '0.0.0.0', port: 5050, sharesPort: false } };
  expect(memberUrl('rest', { address, env: ADVERTISED })).toBe('http://node-a.internal:5050');
  const advertise = 'http://10.0.0.9:80/';
  expect(memberUrl('rest', { address, env: ADVERTISED, advertise })).toBe('http://10.0.0.9');
});

test('addresses on loopback are used only by processes that advertise loopback themselves', () => {
  const url = 'http://127.0.0.1:5050';
  expect(isReachable(url, { env: {} })).toBe(false);
  expect(isReachable(url, { env: ADVERTISED })).toBe(false);
  expect(isReachable(url, { env: { SVC_ADVERTISE_URL: 'http://127.0.0.1:4000' } })).toBe(true);
  expect(isReachable('http://10.0.0.5:5050', { env: {} })).toBe(true);
});
