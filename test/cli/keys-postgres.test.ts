import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { sealContext } from '../../src/daemons/gateway/domain/webhooks/verify/secrets.ts';
import { createSeal, masterKeyId } from '../../src/kit/security/keys.ts';
import { systemRandom } from '../../src/kit/security/random.ts';
import { silentLogger } from '../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../src/kit/time/clock.ts';
import { migratePostgres, PostgresDatabase, postgresGatewayStore } from '../../src/store/postgres/index.ts';
import { dataFolder, ensureDataFolder } from '../../src/supervisor/data-folder.ts';
import { loadSecrets, readKeys } from '../../src/supervisor/keys-file.ts';
import { atEnd } from '../support/at-end.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../support/postgres.ts';
import { testPlatform, withStandIns } from './platform.ts';

const COUNT = 2000;
const KILLS = 4;
const keyOf = (n: number) => ({ namespaceId: 'default', pluginId: 'toy', event: `e${n}`, instanceId: '' });

/** A stopped platform whose database has `COUNT` webhooks, each with a current and a previous secret. */
async function stoppedPlatform() {
  const url = await emptyPostgres();
  const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-test' });
  const store = postgresGatewayStore(database, { clock: systemClock, logger: silentLogger });
  atEnd(() => store.close());
  await migratePostgres(database);
  const platform = await testPlatform(
    ...withStandIns({ config: { store: { url } }, env: { SVC_MASTER_KEY: undefined } }),
  );
  const folder = dataFolder(platform.dataDir);
  ensureDataFolder(folder);
  const { masterKey } = loadSecrets(folder, {}, systemRandom()).keys;
  const seal = createSeal(masterKey);
  const sealed = (age: string, n: number): string => seal.seal(`${age}-${n}`, sealContext(keyOf(n)));
  const rows = Array.from({ length: COUNT }, (_, n) => ({
    ...{ event: keyOf(n).event, current: sealed('new', n), previous: sealed('old', n) },
  }));
  await database.sql(
    `insert into svc.webhook_secret (namespace_id, plugin_id, event, instance_id, current, previous,
       previous_expires_at, rotated_at, namespace_in_url)
     select 'default', 'toy', event, '', current, previous, 9e12, 1, false
     from json_to_recordset($1) as row (event text, current text, previous text)`,
    [JSON.stringify(rows)],
  );

  /** Decrypts every secret with the keys that a start would have. */
  async function verifyAll(): Promise<void> {
    const { keys } = loadSecrets(folder, {}, systemRandom());
    const opening = createSeal(keys.masterKey, keys.previousMasterKeys);
    const records = await store.secrets.list('default');
    expect(records).toHaveLength(COUNT);
    for (const { event, current, previous } of records) {
      const n = Number(event.slice(1));
      const context = sealContext(keyOf(n));
      expect([opening.open(current, context), opening.open(previous!, context)]).toEqual([
        `new-${n}`,
        `old-${n}`,
      ]);
    }
  }
  return { platform, folder, store, masterKey, verifyAll };
}

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'svc keys with PostgreSQL' : POSTGRES_MISSING, () => {
  test('a rotation killed at any moment leaves all secrets readable, and continues', async () => {
    const { platform, folder, store, masterKey, verifyAll } = await stoppedPlatform();
    let last = masterKey;
    for (let kill = 0; kill < KILLS; kill++) {
      const run = platform.start('keys', 'rotate', '--yes', '--json');
      for (let waited = 0; waited < 200 && readKeys(folder)?.masterKey === last; waited++) await sleep(5);
      await sleep(randomInt(100));
      run.child.kill('SIGKILL');
      await run.done;
      last = readKeys(folder)!.masterKey;
      await verifyAll();
    }
    const rotated = await platform.svc('keys', 'rotate', '--yes');
    const id = masterKeyId(readKeys(folder)!.masterKey);
    expect(rotated.json.result).toMatchObject({ keyId: id, unreadable: [] });
    expect(readKeys(folder)).not.toHaveProperty('previousMasterKey');
    await verifyAll();
    expect((await platform.svc('keys', 'status')).json.result).toMatchObject({
      ...{ keyId: id, current: 2 * COUNT, old: [] },
    });
    // Another node, which still has the former key, is refused by this entry.
    expect(await store.cache.get('platform', 'master-key')).toMatchObject({ value: id });
  }, 120_000);

  test('a rotation is refused while any node uses the database', async () => {
    const { platform, store } = await stoppedPlatform();
    const fence = await store.members.join({
      ...{ kind: 'gateway', instance: 'node-b', version: '1', release: null, keys: null },
      ...{ leaseMs: 60_000, isSole: false },
    });
    const refused = await platform.svc('keys', 'rotate', '--yes');
    expect([refused.code, refused.json.error.code]).toEqual([1, 'CONFLICT']);
    expect(refused.json.error.message).toContain('node-b');
    await store.members.leave(fence);
    expect((await platform.svc('keys', 'rotate', '--yes')).code).toBe(0);
  }, 120_000);
});
