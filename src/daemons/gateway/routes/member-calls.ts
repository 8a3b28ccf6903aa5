import { type Endpoint, OWNER_ENDPOINTS, throughGateway } from '../../../contracts/index.ts';
import { BODY_LIMIT_BYTES, type Http, mount, upstreamIdentity } from '../../../http/index.ts';
import type { NodeMembers } from '../node-members.ts';
import { requireGateway } from './service-caller.ts';

export interface MemberCallsServices {
  /** Undefined if no other node uses the store. */
  nodeMembers: NodeMembers | undefined;
  internalSecret: string;
}

/** Passes calls of other nodes to the workflow service of this node, which may listen on loopback only. */
export function memberCallsRoutes(http: Http, { nodeMembers, internalSecret }: MemberCallsServices): void {
  if (!nodeMembers) return;
  const identify = upstreamIdentity({ internalSecret, mode: 'required', logger: http.kit.logger });
  // A separate scope limits the hook to these routes. The caller is identified before the body is read.
  http.register((own, _options, done) => {
    own.addHook('onRequest', async (request) => {
      requireGateway(request, internalSecret);
      request.caller = await identify(request);
    });
    for (const endpoint of OWNER_ENDPOINTS) pass(own, endpoint, nodeMembers);
    done();
  });
}

function pass(http: Http, endpoint: Endpoint, nodeMembers: NodeMembers): void {
  const options = { auth: 'open', bodyLimitBytes: BODY_LIMIT_BYTES } as const;
  mount(http, throughGateway(endpoint), options, async ({ params, body, caller }) => {
    const client = await nodeMembers.workflowOf(params.fence, caller);
    return client.call(endpoint, { body });
  });
}
