import {
  type CommandResult,
  type ExecutionRequest,
  HEADERS,
  type HostTarget,
} from '../../../../contracts/index.ts';
import type { RunOptions } from '../../../../plugins/index.ts';
import type { HostStore, MemberStore } from '../../../../store/ports/index.ts';
import type { Fence } from '../../../membership/membership.ts';
import type { DispatchClient } from '../../../plugin-runtime/gateway-dispatch.ts';
import { fitsTarget } from './fits-target.ts';
import type { HostSessions } from './sessions.ts';

/**
 * Maximum number of candidate hosts to read from the store. Any matching host can run the execution, so more candidates
 * are not needed.
 */
const MAX_CANDIDATES = 1000;

export interface OwnerCallsDeps {
  hosts: HostStore;
  members: Pick<MemberStore, 'live'>;
  fence: Fence;
  dispatch: DispatchClient;
}

/** Host that is connected to another gateway, with the URL of that gateway. */
interface Owned {
  hostId: string;
  url: string;
  /** Whether the gateway is stopping. Its hosts soon connect to another gateway. */
  isDraining: boolean;
}

/**
 * Runs executions on hosts that are connected to other gateways of the same store. The requests go through those
 * gateways.
 */
export class OwnerCalls {
  readonly #deps: OwnerCallsDeps;
  /** Number of calls, for round robin among matching hosts. */
  #calls = 0;

  constructor(deps: OwnerCallsDeps) {
    this.#deps = deps;
  }

  /**
   * Returns a function that runs the execution on a matching host of another gateway. Returns undefined if no host
   * matches. The function does not retry, because the handler might have run even if the connection failed.
   */
  async find(
    request: ExecutionRequest,
    target: HostTarget,
  ): Promise<((options: RunOptions) => Promise<CommandResult>) | undefined> {
    const owned = await this.#search(request.tenantId, target);
    if (!owned) return undefined;
    const { hostId, url } = owned;
    const call = { urlOf: () => url, backend: 'host' as const, headers: { [HEADERS.ownerCall]: '1' } };
    return (options) => this.#deps.dispatch.run(call, request, { ...options, target: { hostId } });
  }

  async #search(namespaceId: string, target: HostTarget): Promise<Owned | undefined> {
    const { hosts, members, fence } = this.#deps;
    const { hostId } = target;
    const options = { limit: MAX_CANDIDATES, hostId };
    const [connected, live] = await Promise.all([
      hosts.connectedElsewhere(namespaceId, fence.require(), options),
      members.live('gateway'),
    ]);
    const owners = new Map(live.map((member) => [member.fence, member]));
    const owned = connected.flatMap(({ capabilities, labels, owner, hostId: found }): Owned[] => {
      const { url, isDraining = false } = owners.get(owner) ?? {};
      const isMatch = fitsTarget({ labels, capabilities: new Set(capabilities) }, target);
      return url && isMatch ? [{ hostId: found, url, isDraining }] : [];
    });
    const serving = owned.filter(({ isDraining }) => !isDraining);
    const usable = serving.length > 0 ? serving : owned;
    return usable[this.#calls++ % usable.length];
  }
}

/**
 * Returns a function that runs an execution on an available host of this gateway, or otherwise on a host of another
 * gateway. Executions that another gateway has forwarded stay on this gateway.
 */
export function runOnAnyGateway(sessions: HostSessions, owners: OwnerCalls | undefined): HostSessions['run'] {
  return async (request, plugin, target, options) => {
    const isHere = !owners || options.isOwnerCall || sessions.canRun(request, target);
    const elsewhere = isHere ? undefined : await owners.find(request, target);
    return elsewhere ? elsewhere(options) : sessions.run(request, plugin, target, options);
  };
}
