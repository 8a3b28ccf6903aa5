import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import { every } from '../../../../../kit/time/clock.ts';
import type { KeyValueStore, SecretKey } from '../../../../../store/ports/index.ts';
import type { ProcessGroup } from '../../../../group/process-group.ts';
import { endpointName } from '../receive/endpoint-name.ts';

const SCOPE = 'webhook-pause';
const MAX_PAUSES = 100_000;
/** Delay until other gateway processes notice a change without a broadcast. */
const POLL_MS = 1000;

export interface WebhookPauses {
  /** Synchronous, since it is checked for each delivery. */
  isPaused(key: Omit<SecretKey, 'instanceId'> & { instanceId: string }): boolean;
  /** Durable once settled. Without an instance id: all instances. */
  pause(key: SecretKey): Promise<void>;
  resume(key: SecretKey): Promise<void>;
  close(): void;
}

export interface WebhookPausesDeps {
  cache: KeyValueStore;
  clock: Clock;
  logger: Logger;
  /** Other gateway processes pause and resume too. */
  group: ProcessGroup;
  /** Called when deliveries on hold may run. */
  onResume: () => void;
}

/** Paused endpoints, whose handlers are not called. @spec docs/webhooks.md "Pause" */
export async function createWebhookPauses({
  cache,
  clock,
  logger,
  group,
  onResume,
}: WebhookPausesDeps): Promise<WebhookPauses> {
  let paused = await load();
  const stop = group.role !== 'alone' ? every(clock, POLL_MS, () => void reload()) : () => {};

  group.onNews(SCOPE, reload);

  async function load(): Promise<Set<string>> {
    const entries = await cache.scan(SCOPE, { prefix: '', limit: MAX_PAUSES });
    return new Set(entries.map(({ key }) => key));
  }

  async function reload(): Promise<void> {
    try {
      const before = paused;
      paused = await load();
      if ([...before].some((name) => !paused.has(name))) onResume();
    } catch (error) {
      logger.warn('The list of paused webhooks could not be reloaded', { error });
    }
  }

  return {
    isPaused(key) {
      if (paused.size === 0) return false;
      return (
        paused.has(endpointName(key)) ||
        (key.instanceId !== '' && paused.has(endpointName({ ...key, instanceId: '' })))
      );
    },
    async pause(key) {
      await cache.set(SCOPE, endpointName(key), true);
      paused.add(endpointName(key));
      await group.announce(SCOPE);
    },
    async resume(key) {
      await cache.delete(SCOPE, endpointName(key));
      paused.delete(endpointName(key));
      onResume();
      await group.announce(SCOPE);
    },
    close: stop,
  };
}
