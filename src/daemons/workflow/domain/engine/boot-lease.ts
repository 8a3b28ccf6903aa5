import type { EngineDeps } from './ports.ts';

/**
 * Renews the lease of this service process. Calls `lost` if another process has fenced this process. The returned
 * function stops the renewal.
 */
export function keepLease(
  {
    store,
    clock,
    logger,
    limits,
    oomKills,
  }: Pick<EngineDeps, 'store' | 'clock' | 'logger' | 'limits' | 'oomKills'>,
  fence: number,
  lost: () => void,
): () => void {
  let stopped = false;
  let cancel: () => void = () => {};
  function renewLater(): void {
    cancel = clock.after(limits.leaseMs / 3, () => void renew());
  }
  async function renew(): Promise<void> {
    try {
      const lease = { leaseUntil: clock.now() + limits.leaseMs, oomKills: oomKills() };
      const kept = stopped || (await store.boots.renew(fence, lease));
      if (!kept) {
        lost();
        return;
      }
    } catch (error) {
      logger.error('The lease could not be renewed; the renewal is retried', { error });
    }
    if (!stopped) renewLater();
  }
  renewLater();
  return () => {
    stopped = true;
    cancel();
  };
}
