import { type Caller, HEADERS, memberPath } from '../../contracts/index.ts';
import { type Client, createClient, serviceHeaders } from '../../http/index.ts';
import { isOfNode } from '../../kit/files/instance-id.ts';
import type { MemberRecord, MemberStore, SharedRunStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import { acceptsConnections } from '../membership/accepts-connections.ts';
import { isReachable } from '../membership/member-url.ts';

export interface RunOwnersDeps extends Pick<Resources, 'keys' | 'env' | 'advertise'> {
  runs: Pick<SharedRunStore, 'ownerOf'>;
  members: Pick<MemberStore, 'live'>;
}

/**
 * Calls the workflow services that execute runs. A service that listens on loopback of another node is called through a
 * gateway of that node. @spec docs/decisions/0224
 */
export class RunOwners {
  readonly #deps: RunOwnersDeps;

  constructor(deps: RunOwnersDeps) {
    this.#deps = deps;
  }

  /**
   * Returns a client for the service whose runs have the fence token. Returns undefined if the service has ended, or if
   * neither the service nor a gateway of its node can be reached.
   */
  async clientOf(
    fence: number,
    options: { timeoutMs: number; caller?: Caller },
  ): Promise<Client | undefined> {
    const owner = await this.#deps.runs.ownerOf(fence);
    if (!owner || owner.url === null) return undefined;
    if (isReachable(owner.url, this.#deps)) return this.#client(owner.url, options);
    const gateway = await this.#gatewayOf(owner.instance);
    if (gateway === undefined) return undefined;
    const { internalSecret } = this.#deps.keys;
    return this.#client(gateway + memberPath(owner.member), options, {
      [HEADERS.internalSecret]: internalSecret,
    });
  }

  #client(
    url: string,
    { timeoutMs, caller }: { timeoutMs: number; caller?: Caller },
    more: Record<string, string> = {},
  ): Client {
    const { keys } = this.#deps;
    const headers = () => ({
      ...serviceHeaders(keys.internalSecret, caller),
      // The called service must not pass the call on again.
      [HEADERS.forwardedStep]: '1',
      ...more,
    });
    return createClient({ url, peer: 'workflow service', headers, timeoutMs });
  }

  /** Returns the URL of a gateway process of the node. Processes that are stopping come last. */
  async #gatewayOf(node: string): Promise<string | undefined> {
    const live = (await this.#deps.members.live('gateway')).filter(({ instance }) =>
      isOfNode(instance, node),
    );
    const urls = live.toSorted(byDraining).flatMap(({ url }) => (url === null ? [] : [url]));
    if (urls.length === 1) return urls[0];
    // A killed process keeps its row until its lease ends.
    for (const url of urls) if (await acceptsConnections(url)) return url;
    return undefined;
  }
}

const byDraining = (left: MemberRecord, right: MemberRecord): number =>
  Number(left.isDraining) - Number(right.isDraining);
