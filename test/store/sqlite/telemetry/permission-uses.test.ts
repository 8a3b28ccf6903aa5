import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openDatabase } from '../../../../src/store/sqlite/index.ts';
import { PERMISSION_USES } from '../../../../src/store/sqlite/telemetry/permission-uses.ts';
import { TELEMETRY_MIGRATIONS } from '../../../../src/store/sqlite/telemetry/schema.ts';
import { TELEMETRY_FILE } from '../../../../src/store/sqlite/telemetry/store.ts';
import { tempDir } from '../../../support/daemon.ts';
import { EARLIER_EVENTS, EARLIER_USES, EVENT_COLUMNS, eventValues } from '../../../support/earlier-uses.ts';
import { append, keptEvent, NOON, openTelemetry } from '../../../support/telemetry.ts';

test('an upgraded telemetry.db knows the newest use of each permission from its events', async () => {
  const dataDir = await tempDir();
  const migrations = TELEMETRY_MIGRATIONS.slice(0, TELEMETRY_MIGRATIONS.indexOf(PERMISSION_USES));
  const old = await openDatabase({ file: join(dataDir, TELEMETRY_FILE), migrations });
  const insert = old.prepare(`insert into event (${EVENT_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`);
  await old.write(() => {
    for (const [n, event] of EARLIER_EVENTS.entries()) insert.run(...eventValues(event, n));
  });
  await old.close();

  const store = await openTelemetry(dataDir);
  for (const { uses, ...filter } of EARLIER_USES) expect(await store.permissionUses(filter)).toEqual(uses);
  const payload = { pluginId: 'mail', permission: 'invoke "crm"' };
  await append(store, [], [keptEvent(NOON + 30, { type: 'plugin.permission.used', payload })]);
  expect(await store.permissionUses({ pluginId: 'mail' })).toEqual([
    { permission: 'invoke "crm"', usedAt: NOON + 30 },
  ]);
});
