import type { IncomingMessage } from 'node:http';
import {
  type CheckHost,
  type ClientSideOf,
  type Http,
  idsOf,
  requireValidRequest,
  takeEarly,
} from '../../../http/index.ts';
import type { Authenticator } from '../domain/identity/authenticator.ts';
import { createLanes } from '../proxy/lanes.ts';
import { PROXIED_METHODS, type ProxiedCall } from '../proxy/proxied-call.ts';
import type { Upstream } from '../proxy/upstreams.ts';
import type { Proceed } from './proxy-steps.ts';

export interface ProxyShortcutServices {
  authenticator: Authenticator;
  upstreams: readonly Upstream[];
  clientSideOf: ClientSideOf;
}

const METHODS = new Set<string | undefined>(PROXIED_METHODS);

/**
 * Calls with a token seen before, to a path that is beyond doubt an upstream's, go past the framework, whose part was a
 * tenth of what forwarding one costs. All others take the route of the same path, which answers the same.
 */
export function takeCallsEarly(http: Http, services: ProxyShortcutServices, proceed: Proceed): void {
  const { authenticator, upstreams, clientSideOf } = services;
  const { kit } = http;
  // Once all routes are there: a path of the gateway's own must never go to an upstream.
  http.addHook('onReady', async () => {
    const laneOf = createLanes(
      upstreams,
      kit.routes.map(({ path }) => path),
    );
    takeEarly(http, (request, response) => {
      const { headers } = request;
      const lane = laneOf(request.url!);
      // What pages of other origins may read is the framework's to say.
      if (!lane || !METHODS.has(request.method) || headers.origin !== undefined) return false;
      const caller = authenticator.recall(request.rawHeaders);
      if (caller === undefined || !isSound(request, kit.checkHost)) return false;
      const startedAt = performance.now();
      kit.lastRequestAt = startedAt;
      const { requestId, traceId, spanId } = idsOf(headers, kit.random);
      const call: ProxiedCall = {
        kit,
        request,
        response,
        upstream: lane.upstream,
        route: lane.route,
        startedAt,
        requestId,
        traceId,
        spanId,
        client: clientSideOf(request),
        corsHeaders: null,
        caller,
      };
      proceed(call, caller);
      return true;
    });
  });
}

/** What is not is refused by the framework, which says why. */
function isSound(request: IncomingMessage, checkHost: CheckHost | undefined): boolean {
  try {
    requireValidRequest(request, checkHost);
    return true;
  } catch {
    return false;
  }
}
