import { readRunNotices } from '../../contracts/index.ts';
import { createClient, serviceHeaders } from '../../http/index.ts';
import { messageOf } from '../../kit/errors/errors.ts';
import { seconds } from '../../kit/time/duration.ts';
import type { WorkflowStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import { isOnAnotherMachine } from '../membership/member-url.ts';
import type { Membership } from '../membership/membership.ts';
import type { Cluster } from './domain/engine/ports.ts';

/** Time after which a caller relies on the polling of the owner instead. */
const NOTIFY_TIMEOUT_MS = seconds(2);

/** Returns the workflow services that share the runs of the store, or undefined if there can be only one. */
export function clusterOf(
  { keys, logger, env }: Pick<Resources, 'keys' | 'logger' | 'env'>,
  { shared: store }: WorkflowStore,
  membership: Membership,
): Cluster | undefined {
  if (!store) return undefined;
  const headers = () => serviceHeaders(keys.internalSecret);
  const { instance, fence } = membership;
  async function urlOf(owner: number): Promise<string | undefined> {
    const url = await store!.urlOf(owner);
    return url !== undefined && isOnAnotherMachine(url, env) ? undefined : url;
  }
  return {
    store,
    member: { instance, fence },
    get isHeld() {
      return membership.isHeld;
    },
    hasOthers: async () => (await membership.others()).length > 0,
    onEnded: (recover) => membership.onEnded(recover),
    onLost: (lost) => membership.onLost(lost),
    urlOf,
    async notify(owner) {
      try {
        const url = await urlOf(owner);
        if (url === undefined) return false;
        const client = createClient({ url, peer: 'workflow', headers, timeoutMs: NOTIFY_TIMEOUT_MS });
        return (await client.call(readRunNotices, { body: { fence: owner } })).isRead;
      } catch (error) {
        // The owner also reads its notices once a second.
        logger.debug(`A workflow service could not be notified: ${messageOf(error)}`, { error });
        return false;
      }
    },
  };
}
