import { isDeepStrictEqual } from 'node:util';
import type { TriggeringWebhook } from '../../../../contracts/index.ts';
import type { Clock } from '../../../../kit/clock.ts';
import { seconds } from '../../../../kit/duration.ts';
import type { Logger } from '../../../../kit/logger.ts';
import type { JsonValue, KeyValueStore } from '../../../../store/ports/index.ts';

/** Which webhooks start workflows, as the workflow service says. */
export interface WebhookTriggers {
  /** At once while what is known is fresh. Never throws. */
  starts(webhook: TriggeringWebhook): boolean | Promise<boolean>;
  /** Workflows have come or gone: what was known, or is being asked, is no longer fresh. */
  forget(): Promise<void>;
}

export interface WebhookTriggersDeps {
  /** Asks the workflow service; undefined where there is none. */
  list: () => Promise<TriggeringWebhook[]> | undefined;
  cache: Pick<KeyValueStore, 'get' | 'set'>;
  clock: Clock;
  logger: Logger;
}

/** A workflow that was registered longer ago than this has its deliveries. */
const FRESH_MS = seconds(2);
const SCOPE = 'platform';
const KEY = 'webhook:triggers';

/**
 * Asked for once in two seconds, however many deliveries come. The last answer is kept in the store: while the workflow
 * service is away, deliveries of other webhooks go on as ever, and those that start workflows are not taken for others.
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
        'The workflow service does not say which webhooks start workflows; what it said last holds',
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
