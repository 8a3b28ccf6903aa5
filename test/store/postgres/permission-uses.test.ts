import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import { PostgresDatabase, postgresTelemetryStore } from '../../../src/store/postgres/index.ts';
import { migratePostgres } from '../../../src/store/postgres/migrate.ts';
import { MIGRATIONS } from '../../../src/store/postgres/migrations.ts';
import { PERMISSION_USES } from '../../../src/store/postgres/telemetry/permission-uses.ts';
import { atEnd } from '../../support/at-end.ts';
import { EARLIER_EVENTS, EARLIER_USES, EVENT_COLUMNS, eventValues } from '../../support/earlier-uses.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';
import { append, keptEvent, NOON } from '../../support/telemetry.ts';

const INSERT = `insert into svc.event (id, actor_key, ${EVENT_COLUMNS})
  values ($1, 'a', $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`;
/** Payloads that PostgreSQL stores as text but cannot read as JSON. */
const UNREADABLE = [
  '{"pluginId":"crm","permission":"a\\u0000b"}',
  '{"pluginId":"crm\\u0000","permission":"x"}',
];

async function open(): Promise<PostgresDatabase> {
  const options = { logger: silentLogger, applicationName: 'svc-test' };
  const database = new PostgresDatabase({ ...options, url: await emptyPostgres() });
  atEnd(() => database.close());
  return database;
}

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'Upgrade' : POSTGRES_MISSING, () => {
  test('an upgraded database knows the newest use of each permission from its events', async () => {
    const database = await open();
    const version = MIGRATIONS.findIndex(({ sql }) => sql === PERMISSION_USES);
    await migratePostgres(database, MIGRATIONS.slice(0, version));
    await database.sql(`select svc.create_telemetry_days(${NOON})`);
    const events = [...EARLIER_EVENTS, ...UNREADABLE.map((payload) => ({ ts: NOON + 20, payload }))];
    for (const [n, event] of events.entries()) await database.sql(INSERT, [n, ...eventValues(event, n)]);

    await migratePostgres(database);
    const store = postgresTelemetryStore(database, { clock: manualClock(NOON) });
    for (const { uses, ...filter } of EARLIER_USES) expect(await store.permissionUses(filter)).toEqual(uses);
    const payload = { pluginId: 'mail', permission: 'invoke "crm"' };
    await append(store, [], [keptEvent(NOON + 30, { type: 'plugin.permission.used', payload })]);
    expect(await store.permissionUses({ pluginId: 'mail' })).toEqual([
      { permission: 'invoke "crm"', usedAt: NOON + 30 },
    ]);
  });
});
