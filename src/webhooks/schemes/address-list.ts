import { BlockList, isIP } from 'node:net';

/** A list of IP addresses and CIDR ranges. An IPv4 address in IPv6 form (`::ffff:1.2.3.4`) equals the IPv4 address. */
export class AddressList {
  readonly #list = new BlockList();

  constructor(entries: readonly string[]) {
    for (const entry of entries) {
      const [address, bits] = entry.split('/') as [string, string | undefined];
      const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
      if (bits === undefined) this.#list.addAddress(address, family);
      else this.#list.addSubnet(address, Number(bits), family);
    }
  }

  has(address: string): boolean {
    const family = isIP(address);
    return family !== 0 && this.#list.check(address, family === 6 ? 'ipv6' : 'ipv4');
  }
}

const lists = new WeakMap<readonly string[], AddressList>();

/** Returns whether a declared list contains an address. Without a list, all addresses are allowed. */
export function isAllowedAddress(ipAllow: readonly string[] | undefined, address: string): boolean {
  if (!ipAllow) return true;
  let list = lists.get(ipAllow);
  if (!list) {
    list = new AddressList(ipAllow);
    lists.set(ipAllow, list);
  }
  return list.has(address);
}
