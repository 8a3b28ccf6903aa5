import { describe, expect, test } from 'vitest';
import { hours } from '../../../src/kit/time/duration.ts';
import type { RefusedRequest, RefusedRequestStore, WebhookInbox } from '../../../src/store/ports/index.ts';
import { delivery } from '../../support/new-delivery.ts';
import { type OpenDriver, openFresh } from './driver.ts';

const ROOMY = { webhookBytes: 10_000, totalBytes: 100_000 };
const KEY = { namespaceId: 'acme', pluginId: '@acme/orders', event: 'created', instanceId: '' };

let made = 0;
function request(fields: Partial<RefusedRequest> = {}): RefusedRequest {
  const webhookId = `018f0000-0000-7000-8000-${String(++made).padStart(12, '0')}`;
  return { ...KEY, webhookId, receivedAt: made, sealed: 'x'.repeat(1000), ...fields };
}

/** What every driver of RefusedRequestStore does. @spec docs/webhooks.md "Replay" */
export function describeRefusedRequests(name: string, open: OpenDriver<RefusedRequestStore>): void {
  describe(`refused requests: ${name}`, () => {
    test('a stored request is found until it is deleted or expires, also after a restart', async () => {
      const { port, clock, reopen } = await openFresh(open);
      const [old, kept] = [
        request({ receivedAt: clock.now() - hours(2) }),
        request({ receivedAt: clock.now() }),
      ];
      await port.add([old, kept], ROOMY);
      const reopened = await reopen();
      expect(await reopened.find(kept.webhookId)).toEqual(kept);
      expect(await reopened.prune(clock.now() - hours(1), 10)).toBe(1);
      expect(await reopened.find(old.webhookId)).toBeUndefined();
      await reopened.delete(kept.webhookId);
      expect(await reopened.find(kept.webhookId)).toBeUndefined();
      expect(await reopened.find(request().webhookId)).toBeUndefined();
    });

    test('a webhook keeps its newest requests within its bytes, and takes none from another', async () => {
      const { port } = await openFresh(open);
      const other = request({ instanceId: 'two' });
      await port.add([other], ROOMY);
      const flood = Array.from({ length: 15 }, () => request());
      await port.add(flood, ROOMY);
      const found = await Promise.all(flood.map(({ webhookId }) => port.find(webhookId)));
      expect(found.map((each) => each !== undefined)).toEqual(flood.map((_, index) => index >= 5));
      expect(await port.find(other.webhookId)).toEqual(other);
    });

    test('above the total, the namespace with the most bytes loses its oldest requests', async () => {
      const { port } = await openFresh(open);
      const small = request({ namespaceId: 'small' });
      await port.add([small], ROOMY);
      const limits = { webhookBytes: 100_000, totalBytes: 40_000 };
      for (let n = 0; n < 3; n++)
        await port.add(
          Array.from({ length: 20 }, () => request()),
          limits,
        );
      const newest = request();
      await port.add([newest], limits);
      expect(await port.find(small.webhookId)).toEqual(small);
      expect(await port.find(newest.webhookId)).toEqual(newest);
    });

    test('a request above every limit is not stored, and the other ones are', async () => {
      const { port } = await openFresh(open);
      const kept = request({ instanceId: 'one' });
      await port.add([kept], ROOMY);
      const huge = request({ sealed: 'x'.repeat(20_000) });
      await port.add([huge], ROOMY);
      expect(await port.find(huge.webhookId)).toBeUndefined();
      expect(await port.find(kept.webhookId)).toEqual(kept);
    });
  });
}

/** What every driver of WebhookInbox does with the replay of a refused delivery. */
export function describeRefusedReplays(name: string, open: OpenDriver<WebhookInbox>): void {
  describe(`replays of refused deliveries: ${name}`, () => {
    test.each([
      ['with an id', true],
      ['without an id', false],
    ] as const)('an accepted replay %s is recorded in its original, and once', async (_, hasMarker) => {
      const { port, clock } = await openFresh(open);
      const marker = hasMarker ? { key: 'order 1', expiresAt: clock.now() + hours(1) } : undefined;
      const original = delivery();
      port.note(original, {
        ...{ status: 'refused', httpStatus: 401, steps: '', outcome: null, durationMs: 1 },
      });
      await port.flush();
      const [first, second] = [delivery(), delivery()];
      const accept = (each: typeof first) =>
        port.accept({ ...each, mode: 'async', replayOf: original.webhookId }, marker, '');
      expect(await accept(first)).toBe('begun');
      expect((await port.find(original.webhookId))!.replayedBy).toBe(first.webhookId);
      if (!hasMarker) return;
      expect(await accept(second)).toBe('done');
      expect((await port.find(original.webhookId))!.replayedBy).toBe(first.webhookId);
      expect(await port.find(second.webhookId)).toBeUndefined();
    });
  });
}
