import { readRunNotices } from '../../contracts/index.ts';
import { messageOf } from '../../kit/errors/errors.ts';
import { seconds } from '../../kit/time/duration.ts';
import type { SharedRunStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import type { Membership } from '../membership/membership.ts';
import type { Cluster } from './domain/engine/ports.ts';
import type { RunOwners } from './run-owners.ts';

/** Time after which a caller relies on the polling of the owner instead. */
const NOTIFY_TIMEOUT_MS = seconds(2);

export interface ClusterDeps extends Pick<Resources, 'logger'> {
  store: SharedRunStore;
  owners: Pick<RunOwners, 'clientOf'>;
  membership: Membership;
}

/** Returns the workflow services that share the runs of the store. */
export function clusterOf({ store, owners, membership, logger }: ClusterDeps): Cluster {
  const { instance, fence } = membership;
  return {
    store,
    member: { instance, fence },
    get isHeld() {
      return membership.isHeld;
    },
    hasOthers: async () => (await membership.others()).length > 0,
    onEnded: (recover) => membership.onEnded(recover),
    onLost: (lost) => membership.onLost(lost),
    async notify(owner) {
      try {
        const client = await owners.clientOf(owner, { timeoutMs: NOTIFY_TIMEOUT_MS });
        return (await client?.call(readRunNotices, { body: { fence: owner } }))?.isRead ?? false;
      } catch (error) {
        // The owner also reads its notices once a second.
        logger.debug(`A workflow service could not be notified: ${messageOf(error)}`, { error });
        return false;
      }
    },
  };
}
