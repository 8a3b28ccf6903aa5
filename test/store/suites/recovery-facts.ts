import { describe, expect, test } from 'vitest';
import { systemRandom } from '../../../src/kit/security/random.ts';
import type {
  DeliveryEnd,
  DeliveryRecord,
  GatewayStore,
  NewDelivery,
} from '../../../src/store/ports/index.ts';
import { delivery, SUCCEEDED } from '../../support/new-delivery.ts';
import { type OpenDriver, openFresh } from './driver.ts';

const random = systemRandom();
const FAILED: DeliveryEnd = { ...SUCCEEDED, status: 'failed', httpStatus: 500 };

/** The facts that deliveries leave for alerts. @spec docs/decisions/0258 */
export function describeRecoveryFacts(name: string, open: OpenDriver<GatewayStore>): void {
  describe(`facts of deliveries: ${name}`, () => {
    async function setUp() {
      const { port } = await openFresh(open);
      const { inbox, alerts } = port;
      const end = async (added: NewDelivery, result: DeliveryEnd) => {
        await inbox.accept(added, undefined, '');
        await inbox.finish(added.webhookId, result);
        return (await inbox.find(added.webhookId))!;
      };
      const replay = async (of: DeliveryRecord, result: DeliveryEnd) => {
        const copy = delivery({ origin: 'replay', replayOf: of.webhookId });
        await inbox.replay(copy, '', of);
        await inbox.finish(copy.webhookId, result);
        return (await inbox.find(copy.webhookId))!;
      };
      const facts = async () =>
        (await alerts.facts(100)).map(({ kind, objectId, origins }) => [kind, objectId, origins]);
      return { inbox, alerts, end, replay, facts };
    }

    test('only failures, and successful replays of failures, are facts', async () => {
      const { end, replay, facts } = await setUp();
      const good = await end(delivery(), SUCCEEDED);
      await replay(good, SUCCEEDED);
      expect(await facts()).toEqual([]);
      const { webhookId: first, ...bad } = await end(delivery(), { ...FAILED, status: 'dead' });
      const second = await replay({ ...bad, webhookId: first }, FAILED);
      await replay(second, SUCCEEDED);
      expect(await facts()).toEqual([
        ['delivery.failed', first, []],
        ['delivery.failed', second.webhookId, [first]],
        ['delivery.recovered', second.webhookId, [first]],
      ]);
    });

    test('a delivery that is stored as failed at once is a fact', async () => {
      const { inbox, alerts, facts } = await setUp();
      const added = [delivery(), delivery({ namespaceId: 'other' })];
      for (const each of added) inbox.note(each, FAILED);
      inbox.note(delivery(), { ...FAILED, status: 'refused' });
      await inbox.flush();
      await inbox.latest();
      expect(await facts()).toEqual(added.map(({ webhookId }) => ['delivery.failed', webhookId, []]));
      expect(await alerts.facts(10)).toMatchObject([{ namespaceId: 'acme' }, { namespaceId: 'other' }]);
    });

    test('freeing the bodies of failed deliveries adds no fact', async () => {
      const { inbox, end, facts } = await setUp();
      const body = Buffer.alloc(500, 'x');
      const dead = await end(delivery({ body, bodyBytes: 500 }), { ...FAILED, status: 'dead' });
      const noted = delivery({ body, bodyBytes: 500, webhookId: random.uuid() });
      inbox.note(noted, FAILED);
      await inbox.flush();
      await inbox.latest();
      while ((await inbox.shrink({ maxBytes: 1, limit: 1 })) > 0 && (await inbox.find(dead.webhookId))?.body);
      await inbox.shrink({ maxBytes: 1, limit: 1 });
      expect((await facts()).map(([, id]) => id)).toEqual([dead.webhookId, noted.webhookId]);
    });
  });
}
