import { isDeepStrictEqual } from 'node:util';
import type { TriggeringWebhook } from '../../../../../contracts/index.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import { seconds } from '../../../../../kit/time/duration.ts';
import type { JsonValue, KeyValueStore } from '../../../../../store/ports/index.ts';

/** Determines whether a webhook starts workflows. The list of such webhooks comes from the workflow service. */
export interface WebhookTriggers {
  /**
   * Returns whether a webhook starts workflows. The result is synchronous while the cached list is fresh. Never throws.
   */
  starts(webhook: TriggeringWebhook): boolean | Promise<boolean>;
  /** Invalidates the cached list. Called after workflows are added or removed. */
  forget(): Promise<void>;
}

export interface WebhookTriggersDeps {
  /** Fetches the list from the workflow service. Returns undefined if the platform runs no workflow service. */
  list: () => Promise<TriggeringWebhook[]> | undefined;
  cache: Pick<KeyValueStore, 'get' | 'set'>;
  clock: Clock;
  logger: Logger;
}

/** Cache TTL, in ms. A new workflow takes effect after at most this time, even if `forget` is not called. */
const FRESH_MS = seconds(2);
const SCOPE = 'platform';
const KEY = 'webhook:triggers';

/**
 * Fetches the list of workflow webhooks at most every two seconds and stores a copy. While the workflow service is
 * unavailable, the stored copy is used, so that webhooks without workflows continue to work.
 */
export function createWebhookTriggers({ list, cache, clock, logger }: WebhookTriggersDeps): WebhookTriggers {
  let known: ReadonlySet<string> | undefined;
  let kept: TriggeringWebhook[] | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;
  let asking: Promise<void> | undefined;

  async function ask(question: Promise<TriggeringWebhook[]>): Promise<void> {
    try {
      const items = await question;
      known = new Set(items.map(keyOf));
      if (!isDeepStrictEqual(items, kept)) await cache.set(SCOPE, KEY, items as JsonValue);
      kept = items;
    } catch (error) {
      logger.warn(
        'The workflow service does not report which webhooks start workflows; the last known list is used',
        {
          error,
        },
      );
      known ??= new Set((await lastKept()).map(keyOf));
    }
  }

  async function lastKept(): Promise<TriggeringWebhook[]> {
    try {
      return ((await cache.get(SCOPE, KEY))?.value ?? []) as TriggeringWebhook[];
    } catch {
      return [];
    }
  }

  return {
    starts(webhook) {
      if (asking || clock.monotonic() >= askedAt + FRESH_MS) {
        const question = asking ? undefined : list();
        if (!asking && !question) return false;
        if (question) {
          askedAt = clock.monotonic();
          asking = ask(question).finally(() => {
            asking = undefined;
          });
        }
        return asking!.then(() => known?.has(keyOf(webhook)) === true);
      }
      return known?.has(keyOf(webhook)) === true;
    },
    async forget() {
      await asking;
      askedAt = Number.NEGATIVE_INFINITY;
    },
  };
}

function keyOf({ pluginId, event }: TriggeringWebhook): string {
  return `${pluginId} ${event}`;
}
