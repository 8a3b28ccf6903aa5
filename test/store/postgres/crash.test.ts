import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../../src/kit/time/clock.ts';
import { days } from '../../../src/kit/time/duration.ts';
import { PostgresDatabase } from '../../../src/store/postgres/database.ts';
import { PostgresWebhookInbox } from '../../../src/store/postgres/gateway/inbox/inbox.ts';
import { postgresGatewayStore } from '../../../src/store/postgres/gateway/store.ts';
import { migratePostgres } from '../../../src/store/postgres/migrate.ts';
import { atEnd } from '../../support/at-end.ts';
import { delivery } from '../../support/new-delivery.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS, PostgresServer } from '../../support/postgres.ts';

const CRASHES = 5;
const SENDERS = 20;

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'PostgreSQL crashes' : POSTGRES_MISSING, () => {
  test('every delivery that was accepted before a crash of the server is there afterwards, once', async () => {
    const server = await PostgresServer.start({ durable: true });
    atEnd(() => server.remove());
    const database = new PostgresDatabase({
      url: server.url(),
      logger: silentLogger,
      applicationName: 'svc-test',
    });
    atEnd(() => database.close());
    await migratePostgres(database);
    const inbox = new PostgresWebhookInbox(database, { clock: systemClock, logger: silentLogger });
    const accepted = new Set<string>();
    let refused = 0;
    let isOver = false;

    /** Sends one delivery after another, and sends it again with the same id when it was refused. */
    async function send(sender: number): Promise<void> {
      for (let n = 0; !isOver; n++) {
        const key = `${sender}-${n}`;
        for (;;) {
          const next = delivery({ requestId: key, body: new Uint8Array(500) });
          const claim = { key, expiresAt: systemClock.now() + days(7) };
          const outcome = await inbox.accept(next, claim, '').catch((error: unknown) => {
            expect(error).toMatchObject({ code: 'STORE_ERROR' });
            refused++;
            return undefined;
          });
          if (outcome) break;
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        accepted.add(key);
      }
    }
    const sending = Promise.all(Array.from({ length: SENDERS }, (_, sender) => send(sender)));
    for (let crash = 0; crash < CRASHES; crash++) {
      const before = accepted.size;
      await expect.poll(() => accepted.size).toBeGreaterThan(before + SENDERS);
      await server.stop('immediate');
      await server.up();
    }
    isOver = true;
    await sending;
    expect(refused).toBeGreaterThan(0);
    const { rows } = await database.sql<{ key: string; count: number }>(
      'select request_id as key, count(*) as count from svc.delivery group by request_id',
    );
    const stored = new Map(rows.map(({ key, count }) => [key, count]));
    expect([...accepted].filter((key) => stored.get(key) !== 1)).toEqual([]);
  });

  test('a pause of webhooks outlives a crash of the server', async () => {
    const server = await PostgresServer.start({ durable: true });
    atEnd(() => server.remove());
    const options = { url: server.url(), logger: silentLogger, applicationName: 'svc-test' };
    const database = new PostgresDatabase(options);
    const store = postgresGatewayStore(database, { clock: systemClock, logger: silentLogger });
    atEnd(() => store.close());
    await migratePostgres(database);
    await store.cache.set('webhook-pause', 'acme', { since: 1 });
    await server.stop('immediate');
    await server.up();
    await expect
      .poll(() => store.cache.get('webhook-pause', 'acme').catch(() => null))
      .toMatchObject({
        value: { since: 1 },
      });
  });
});
