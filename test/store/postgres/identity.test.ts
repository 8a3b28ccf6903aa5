import { describe, expect, test, vi } from 'vitest';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../../src/kit/time/clock.ts';
import { openMembers, openWorkflowStore } from '../../../src/store/open-store.ts';
import {
  adoptDatabase,
  isCopy,
  migratePostgres,
  PostgresDatabase,
  postgresGatewayStore,
} from '../../../src/store/postgres/index.ts';
import { MIGRATIONS } from '../../../src/store/postgres/migrations.ts';
import { atEnd } from '../../support/at-end.ts';
import { tempDir } from '../../support/daemon.ts';
import { migrateDatabase } from '../../support/migrated-postgres.ts';
import { delivery } from '../../support/new-delivery.ts';
import {
  emptyPostgres,
  POSTGRES_MISSING,
  POSTGRES_PROGRAMS,
  PostgresServer,
} from '../../support/postgres.ts';

/** Version of the schema before databases had an identity. */
const WITHOUT_IDENTITY = 5;
/** A position of a server that has run for years. */
const HIGH = 4096 * 50_000_000;
const STORED = `insert into svc.delivery (position, webhook_id, namespace_id, plugin_id, event, instance_id, received_at,
    source, request_id, trace_id, mode, origin, status, steps, body_bytes, headers)
  values (${HIGH}, gen_random_uuid(), 'acme', 'p', 'e', '', 1, '', 'restored', '', 'async', 'sender', 'accepted', '', 0, '[]')`;

function connect(url: string): PostgresDatabase {
  const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-test' });
  atEnd(() => database.close());
  return database;
}

async function unfinished(database: PostgresDatabase): Promise<string[]> {
  const { inbox } = postgresGatewayStore(database, { clock: systemClock, logger: silentLogger });
  await inbox.accept(delivery({ requestId: 'new' }), undefined, '[]');
  return (await inbox.unfinished(10)).map(({ requestId }) => requestId);
}

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'a copied database' : POSTGRES_MISSING, () => {
  test('is refused by every service until it is adopted, which ends the members of the original', async () => {
    const server = await PostgresServer.start();
    atEnd(() => server.remove());
    await server.run('create database original');
    await migrateDatabase(server.url('original'));
    const { members, close } = await openMembers({
      postgresUrl: server.url('original'),
      logger: silentLogger,
    });
    const member = {
      kind: 'gateway',
      instance: 'n',
      version: '1',
      release: null,
      keys: null,
      leaseMs: 1e6,
    } as const;
    await members.join({ ...member, isSole: false });
    await close();
    // The server ends the sessions of closed connections a moment later.
    await vi.waitFor(() => server.run('create database copy template original'), { timeout: 10_000 });
    const options = { postgresUrl: server.url('copy'), clock: systemClock, logger: silentLogger };
    const open = async () => openWorkflowStore({ ...options, dataDir: await tempDir() });
    await expect(open()).rejects.toMatchObject({ code: 'CONFLICT', details: { reason: 'DATABASE_IS_COPY' } });
    const copy = connect(server.url('copy'));
    await adoptDatabase(copy);
    await (await open()).close();
    const ended = await copy.sql('select from svc.member where ended_at is null');
    expect([await isCopy(copy), ended.rows]).toEqual([false, []]);
    expect(await isCopy(connect(server.url('original')))).toBe(false);
  });

  test('delivers what was accepted on a server with higher transaction ids', async () => {
    const url = await emptyPostgres();
    await migrateDatabase(url);
    const database = connect(url);
    await database.sql(STORED);
    await database.sql(`update svc.home_database set identity = 'another server'`);
    await adoptDatabase(database);
    expect(await unfinished(database)).toEqual(['restored', 'new']);
  });

  test('of an older version is usable after its migration', async () => {
    const database = connect(await emptyPostgres());
    await migratePostgres(database, MIGRATIONS.slice(0, WITHOUT_IDENTITY));
    await database.sql(STORED);
    await migratePostgres(database);
    expect(await unfinished(database)).toEqual(['restored', 'new']);
  });
});
