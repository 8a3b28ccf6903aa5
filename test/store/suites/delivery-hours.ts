import { describe, expect, test } from 'vitest';
import { days, hours } from '../../../src/kit/time/duration.ts';
import type { WebhookInbox } from '../../../src/store/ports/index.ts';
import { delivery, SUCCEEDED } from '../../support/new-delivery.ts';
import { type OpenDriver, openFresh } from './driver.ts';

const HOUR = hours(1);

/** Counts of deliveries per hour. @spec docs/webhooks.md "Records" */
export function describeDeliveryHours(name: string, open: OpenDriver<WebhookInbox>): void {
  describe(`counts of deliveries: ${name}`, () => {
    async function counted() {
      const bench = await openFresh(open);
      const now = bench.clock.now();
      const first = now - (now % HOUR);
      const accept = async (receivedAt: number, more = {}) => {
        const accepted = delivery({ receivedAt, ...more });
        await bench.port.accept(accepted, undefined, '');
        return accepted.webhookId;
      };
      const list = (port = bench.port) => port.countByHour('acme', { from: first, to: first + 3 * HOUR });
      return { ...bench, first, accept, list };
    }

    test('each delivery counts in the hour of its receipt, in the group of its latest status', async () => {
      const { port, first, accept, list } = await counted();
      await accept(first);
      const good = await accept(first + HOUR - 1);
      const dead = await accept(first);
      await accept(first + 2 * HOUR);
      await accept(first + 3 * HOUR);
      await accept(first, { namespaceId: 'other' });
      port.note(delivery({ receivedAt: first }), { ...SUCCEEDED, status: 'refused', httpStatus: 401 });
      await port.finish(good, SUCCEEDED);
      await port.finish(dead, { ...SUCCEEDED, status: 'retrying', nextAttemptAt: first + 1 });
      expect(await list()).toEqual([
        { hour: first, received: 4, succeeded: 1, failed: 0, unhandled: 1 },
        { hour: first + 2 * HOUR, received: 1, succeeded: 0, failed: 0, unhandled: 0 },
      ]);
      await port.finish(dead, { ...SUCCEEDED, status: 'dead', steps: 'again' });
      expect((await list())[0]).toEqual({ hour: first, received: 4, succeeded: 1, failed: 1, unhandled: 1 });
    });

    test('counts stay when bodies and deliveries are deleted, and for at least 31 days', async () => {
      const { port, first, accept, list, reopen } = await counted();
      const body = new Uint8Array(100);
      for (let i = 0; i < 5; i++) await port.finish(await accept(first, { body }), SUCCEEDED);
      const before = await list();
      expect(before).toEqual([{ hour: first, received: 5, succeeded: 5, failed: 0, unhandled: 0 }]);
      await port.shrink({ maxBytes: 1, limit: 3 });
      await port.shrink({ maxBytes: 1, limit: 3 });
      expect(await list()).toEqual(before);
      await port.prune({ receivedBefore: first + HOUR, now: first + days(31), limit: 100 });
      expect(await list()).toEqual(before);
      const again = await reopen();
      expect(await list(again)).toEqual(before);
      await again.prune({ receivedBefore: 0, now: first + days(60), limit: 100 });
      expect(await list(again)).toEqual([]);
    });
  });
}
