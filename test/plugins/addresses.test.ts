import fc from 'fast-check';
import { expect, test } from 'vitest';
import { privateKindOf } from '../../src/plugins/services/addresses.ts';

const octet = fc.nat(255);
const ipv4 = fc.tuple(octet, octet, octet, octet);
const dotted = (parts: readonly number[]) => parts.join('.');
const group = fc.nat(0xffff);
const hex = (groups: readonly number[]) => groups.map((value) => value.toString(16)).join(':');

test.each([
  ['127.0.0.1', 'loopback'],
  ['127.255.255.254', 'loopback'],
  ['0.0.0.0', 'unspecified'],
  ['10.1.2.3', 'private'],
  ['172.16.0.1', 'private'],
  ['172.31.255.255', 'private'],
  ['192.168.1.1', 'private'],
  ['169.254.169.254', 'link-local'],
  ['100.64.0.1', 'shared'],
  ['100.100.100.200', 'metadata'],
  ['168.63.129.16', 'metadata'],
  ['224.0.0.251', 'multicast'],
  ['255.255.255.255', 'reserved'],
  ['192.0.0.192', 'metadata'],
  ['::1', 'loopback'],
  ['::', 'unspecified'],
  ['::ffff:127.0.0.1', 'loopback'],
  ['::ffff:7f00:1', 'loopback'],
  ['0:0:0:0:0:ffff:a9fe:a9fe', 'link-local'],
  ['64:ff9b::10.0.0.1', 'private'],
  ['2002:7f00:1::', 'loopback'],
  ['fe80::1', 'link-local'],
  ['fe80::1%eth0', 'link-local'],
  ['fd00:ec2::254', 'metadata'],
  ['ff02::1', 'multicast'],
  ['::127.0.0.1', 'reserved'],
  ['64:ff9b:1::1', 'reserved'],
  ['2001:db8::1', 'reserved'],
  ['2001::1', 'reserved'],
])('%s is %s', (address, kind) => {
  expect(privateKindOf(address)).toBe(kind);
});

test.each([
  '1.1.1.1',
  '172.15.0.1',
  '172.32.0.1',
  '100.63.0.1',
  '100.128.0.1',
  '2606:4700::1111',
  '::ffff:8.8.8.8',
])('%s is public', (address) => {
  expect(privateKindOf(address)).toBeUndefined();
});

/** The rule for IPv4 once more, in arithmetic instead of tables. */
function isSpecial([a, b, c, d]: readonly [number, number, number, number]): boolean {
  return (
    [0, 10, 127].includes(a) ||
    a >= 224 ||
    (a === 100 && b >= 64 && b < 128) ||
    (a === 169 && b === 254) ||
    (a === 172 && b >= 16 && b < 32) ||
    (a === 192 && (b === 168 || (b === 0 && (c === 0 || c === 2)) || (b === 88 && c === 99))) ||
    (a === 198 && (b === 18 || b === 19 || (b === 51 && c === 100))) ||
    (a === 203 && b === 0 && c === 113) ||
    (a === 168 && b === 63 && c === 129 && d === 16)
  );
}

test('an IPv4 address is private exactly when it lies in a special range', () => {
  const edge = fc.constantFrom(
    0,
    1,
    10,
    15,
    16,
    18,
    31,
    32,
    63,
    64,
    100,
    113,
    127,
    128,
    168,
    169,
    172,
    192,
    198,
    203,
    224,
    254,
  );
  const address = fc.oneof(ipv4, fc.tuple(edge, edge, edge, octet));
  fc.assert(
    fc.property(address, (parts) => {
      expect(privateKindOf(dotted(parts)) !== undefined).toBe(isSpecial(parts));
    }),
    { numRuns: 2000 },
  );
});

test('however an IPv4 address is carried in an IPv6 one, it stays what it is', () => {
  fc.assert(
    fc.property(ipv4, (parts) => {
      const [a, b, c, d] = parts;
      const low = hex([(a << 8) | b, (c << 8) | d]);
      const kind = privateKindOf(dotted(parts));
      for (const form of [
        `::ffff:${dotted(parts)}`,
        `::ffff:${low}`,
        `0:0:0:0:0:ffff:${low}`,
        `64:ff9b::${low}`,
        `2002:${low}::1`,
      ]) {
        expect([form, privateKindOf(form)]).toEqual([form, kind]);
      }
    }),
  );
});

test('outside 2000::/3 no IPv6 address is public, save those that carry a public IPv4 one', () => {
  fc.assert(
    fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
      const isGlobal = groups[0]! >> 13 === 1;
      const carriesIPv4 = groups[0] === 0 || groups[0] === 0x64;
      if (!isGlobal && !carriesIPv4) expect(privateKindOf(hex(groups))).toBeDefined();
    }),
  );
});

test('anything but an address is refused', () => {
  for (const text of ['', 'localhost', '1.2.3', '0x7f.1', '[::1]']) {
    expect(() => privateKindOf(text)).toThrow(RangeError);
  }
});
