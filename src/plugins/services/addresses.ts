import { BlockList, isIP, isIPv4 } from 'node:net';

/** Kind of a non-public IP address. */
export type PrivateKind =
  | 'loopback'
  | 'unspecified'
  | 'private'
  | 'link-local'
  | 'shared'
  | 'multicast'
  | 'metadata'
  | 'reserved';

/** Special-purpose address ranges registered by IANA, and public addresses of cloud metadata services. */
const IPV4: Array<[network: string, bits: number, kind: PrivateKind]> = [
  ['127.0.0.0', 8, 'loopback'],
  ['10.0.0.0', 8, 'private'],
  ['172.16.0.0', 12, 'private'],
  ['192.168.0.0', 16, 'private'],
  ['169.254.0.0', 16, 'link-local'],
  ['100.100.100.200', 32, 'metadata'],
  ['100.64.0.0', 10, 'shared'],
  ['0.0.0.0', 8, 'unspecified'],
  ['224.0.0.0', 4, 'multicast'],
  ['168.63.129.16', 32, 'metadata'],
  ['192.0.0.192', 32, 'metadata'],
  ['192.0.0.0', 24, 'reserved'],
  ['192.0.2.0', 24, 'reserved'],
  ['192.88.99.0', 24, 'reserved'],
  ['198.18.0.0', 15, 'reserved'],
  ['198.51.100.0', 24, 'reserved'],
  ['203.0.113.0', 24, 'reserved'],
  ['240.0.0.0', 4, 'reserved'],
];
const IPV6: Array<[network: string, bits: number, kind: PrivateKind]> = [
  ['::1', 128, 'loopback'],
  ['::', 128, 'unspecified'],
  ['fd00:ec2::254', 128, 'metadata'],
  ['fd20:ce::254', 128, 'metadata'],
  ['fc00::', 7, 'private'],
  ['fe80::', 10, 'link-local'],
  ['ff00::', 8, 'multicast'],
  ['2001::', 23, 'reserved'],
  ['2001:db8::', 32, 'reserved'],
  ['3fff::', 20, 'reserved'],
];

const rules = (family: 'ipv4' | 'ipv6', rows: typeof IPV4) =>
  rows.map(([network, bits, kind]) => {
    const list = new BlockList();
    list.addSubnet(network, bits, family);
    return { kind, has: (address: string) => list.check(address, family) };
  });
const ipv4Rules = rules('ipv4', IPV4);
const ipv6Rules = rules('ipv6', IPV6);

/** Address range that contains all public IPv6 addresses. */
const globalUnicast = new BlockList();
globalUnicast.addSubnet('2000::', 3, 'ipv6');

/**
 * Returns the kind of a private IP address, or undefined for a public address. An IPv6 address with an embedded IPv4
 * address has the kind of the IPv4 address. Throws RangeError if the text is not an IP address.
 */
export function privateKindOf(address: string): PrivateKind | undefined {
  const bare = address.split('%')[0]!;
  if (isIP(bare) === 0) throw new RangeError(`not an IP address: ${address}`);
  if (isIPv4(bare)) return ipv4Rules.find(({ has }) => has(bare))?.kind;
  const special = ipv6Rules.find(({ has }) => has(bare));
  if (special) return special.kind;
  const carried = carriedIPv4(groupsOf(bare));
  if (carried) return privateKindOf(carried);
  return globalUnicast.check(bare, 'ipv6') ? undefined : 'reserved';
}

/** Returns the eight 16-bit groups of an IPv6 address. */
function groupsOf(address: string): number[] {
  // The URL parser normalizes every notation, including dotted notation, to hexadecimal groups.
  const text = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = '', tail] = text.split('::');
  const parse = (part: string) =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
  const before = parse(head);
  if (tail === undefined) return before;
  const after = parse(tail);
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
}

function carriedIPv4(groups: number[]): string | undefined {
  const startsWith = (...prefix: number[]) => prefix.every((group, index) => groups[index] === group);
  const dotted = (high: number, low: number) => `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
  const isMapped = startsWith(0, 0, 0, 0, 0, 0xffff);
  const isNat64 = startsWith(0x64, 0xff9b, 0, 0, 0, 0);
  if (isMapped || isNat64) return dotted(groups[6]!, groups[7]!);
  return startsWith(0x2002) ? dotted(groups[1]!, groups[2]!) : undefined;
}

/** Returns an IP address without brackets, or null if `hostname` is a host name. */
export function literalAddress(hostname: string): string | null {
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  return isIP(bare) === 0 ? null : bare;
}
