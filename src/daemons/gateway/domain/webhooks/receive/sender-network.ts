/**
 * Returns the network that shares a rate limit. For IPv4 and IPv4-mapped addresses, the network is the IPv4 address.
 * For IPv6, the network is the /64 prefix, because one client usually controls a whole /64.
 */
export function senderNetwork(address: string): string {
  if (!address.includes(':')) return address;
  const embedded = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i.exec(address);
  if (embedded) return embedded[1]!;
  const [head = '', tail] = address.split('%', 1)[0]!.toLowerCase().split('::');
  const first = head === '' ? [] : head.split(':');
  const last = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - first.length - last.length);
  const groups = [...first, ...Array<string>(zeros).fill('0'), ...last].slice(0, 4);
  return `${groups.map((group) => group.replace(/^0+(?=.)/, '')).join(':')}::/64`;
}
