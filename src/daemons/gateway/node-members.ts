import { type Caller, HEADERS } from '../../contracts/index.ts';
import { type Client, createClient, serviceHeaders } from '../../http/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import { isOfNode } from '../../kit/files/instance-id.ts';
import { minutes } from '../../kit/time/duration.ts';
import type { MemberStore } from '../../store/ports/index.ts';

/** Longer than a watch request for steps takes. */
const TIMEOUT_MS = minutes(1);

export interface NodeMembersDeps {
  /** Id of the node. */
  node: string;
  members: Pick<MemberStore, 'live'>;
  internalSecret: string;
}

/** Calls the services of this node that other nodes cannot reach, because these services listen on loopback. */
export class NodeMembers {
  readonly #deps: NodeMembersDeps;

  constructor(deps: NodeMembersDeps) {
    this.#deps = deps;
  }

  /**
   * Returns a client for the workflow service with the fence token. Throws NOT_FOUND if that service does not run on
   * this node. A caller can therefore not choose the address that this gateway calls.
   */
  async workflowOf(fence: number, caller: Caller): Promise<Client> {
    const { node, members, internalSecret } = this.#deps;
    const live = await members.live('workflow');
    const url = live.find((member) => member.fence === fence && isOfNode(member.instance, node))?.url;
    if (!url)
      throw new PlatformError(
        'NOT_FOUND',
        `No workflow service with the fence token ${fence} runs on this node.`,
      );
    const headers = () => ({ ...serviceHeaders(internalSecret, caller), [HEADERS.forwardedStep]: '1' });
    return createClient({ url, peer: 'workflow service', headers, timeoutMs: TIMEOUT_MS });
  }
}
