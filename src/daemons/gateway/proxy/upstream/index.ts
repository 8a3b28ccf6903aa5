import { ChoosingClient } from './choose-client.ts';
import type { UpstreamClient } from './client.ts';
import { LoopbackClient } from './loopback-client.ts';
import { createUndiciClient } from './undici-client.ts';

export {
  type UpstreamCall,
  type UpstreamClient,
  type UpstreamHandler,
  UpstreamTimeoutError,
  upstreamError,
} from './client.ts';

export { requestUpgrade, type UpgradeAnswer } from './upgrade.ts';

/** Creates the client for upstreams. `timeoutMs` is the shortest timeout of all routes. */
export function createUpstreamClient(timeoutMs: number): UpstreamClient {
  return new ChoosingClient(new LoopbackClient({ timeoutMs }), createUndiciClient({ timeoutMs }));
}
