import { describe, expect, test } from 'vitest';
import { ackItems, leaseItems, putItem } from '../../src/contracts/index.ts';
import { createClient } from '../../src/http/index.ts';
import { ClusterGateway } from '../support/cluster-gateway.ts';
import { ADMIN_TOKEN } from '../support/gateway.ts';
import { createLedgerProject } from '../support/ledger.ts';
import { migratedPostgres } from '../support/migrated-postgres.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../support/postgres.ts';

const params = { name: 'orders' };
const COUNT = 120;
const LEASE_MS = 10_000;
const options = { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } };

/** Two gateway processes on one database. */
async function startTwo() {
  const [url, ledger] = [await migratedPostgres(), await createLedgerProject()];
  const gateways = await Promise.all(
    ['a', 'b'].map((name) =>
      ClusterGateway.create({ name, projectDir: ledger.folder, config: { store: { url } } }),
    ),
  );
  await Promise.all(gateways.map((gateway) => gateway.start()));
  return gateways.map((gateway) => {
    const client = createClient({ url: gateway.url, peer: 'gateway', timeoutMs: 60_000 });
    return {
      gateway,
      put: (id: string, orderKey?: string) =>
        client.call(
          putItem,
          { params, body: { id, body: { id }, ...(orderKey ? { orderKey } : {}) } },
          options,
        ),
      lease: async (body: object) => (await client.call(leaseItems, { params, body }, options)).items,
      ack: async (leaseIds: string[]) =>
        (await client.call(ackItems, { params, body: { leaseIds } }, options)).items,
    };
  });
}

describe.skipIf(!POSTGRES_PROGRAMS)(
  POSTGRES_PROGRAMS ? 'a queue of two gateways' : POSTGRES_MISSING,
  { timeout: 120_000 },
  () => {
    test('is shared: an item wakes a call at the other one, and a killed one repeats nothing within a lease', async () => {
      const [a, b] = (await startTwo()) as [
        Awaited<ReturnType<typeof startTwo>>[0],
        Awaited<ReturnType<typeof startTwo>>[0],
      ];
      const waiting = b.lease({ waitMs: 30_000 });
      await a.put('first');
      const [first] = await waiting;
      expect(first).toMatchObject({ id: 'first', attempt: 1 });
      expect(await a.ack([first!.leaseId])).toMatchObject([{ status: 'acked' }]);

      for (let n = 0; n < COUNT; n++) await (n % 2 ? a : b).put(`i${n}`, n % 3 ? `k${n % 5}` : undefined);
      const held = await a.lease({ max: 10, leaseMs: LEASE_MS });
      expect(held).toHaveLength(10);
      const heldUntil = Math.max(...held.map(({ leasedUntil }) => leasedUntil));
      await a.gateway.kill();
      await a.gateway.start();
      const again = new Map<string, number>();
      const handled: string[] = [];
      const order = new Map<string, number[]>();
      await Promise.all(
        [a, b, b].map(async (each) => {
          while (handled.length < COUNT) {
            const items = await each.lease({ max: 7, leaseMs: 60_000, waitMs: 1000 });
            for (const { id, attempt, leasedUntil, orderKey } of items) {
              if (attempt > 1) again.set(id, leasedUntil - 60_000);
              if (orderKey) order.set(orderKey, [...(order.get(orderKey) ?? []), Number(id.slice(1))]);
            }
            const ends = await each.ack(
              items.map(({ leaseId }) => leaseId).concat(items.length ? [] : ['x']),
            );
            handled.push(...items.filter((_, index) => ends[index]!.status === 'acked').map(({ id }) => id));
          }
        }),
      );
      expect(new Set(handled).size).toBe(COUNT);
      expect(handled).toHaveLength(COUNT);
      expect([...again.keys()].sort()).toEqual(held.map(({ id }) => id).sort());
      for (const at of again.values()) expect(at).toBeGreaterThanOrEqual(heldUntil);
      for (const numbers of order.values()) expect(numbers).toEqual(numbers.toSorted((x, y) => x - y));
    });
  },
);
