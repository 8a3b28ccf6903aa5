import { mkdir } from 'node:fs/promises';
import { expect } from 'vitest';
import type { ServiceName } from '../../src/contracts/index.ts';
import { sealContext } from '../../src/daemons/gateway/domain/webhooks/verify/secrets.ts';
import { createSeal } from '../../src/kit/security/keys.ts';
import { systemRandom } from '../../src/kit/security/random.ts';
import { silentLogger } from '../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../src/kit/time/clock.ts';
import { sqliteGatewayStore } from '../../src/store/sqlite/index.ts';
import { type DataFolder, dataFolder, ensureDataFolder } from '../../src/supervisor/data-folder.ts';
import { loadSecrets } from '../../src/supervisor/keys-file.ts';
import { type TestPlatform, testPlatform, withStandIns } from './platform.ts';

const keyOf = (n: number) => ({ namespaceId: 'default', pluginId: 'toy', event: `e${n}`, instanceId: '' });

/** Stores webhook secrets of a stopped platform, encrypted with its current master key. */
export async function storeSecrets(
  folder: DataFolder,
  secrets: ReadonlyArray<{ n: number; secret: string }>,
  env: Record<string, string | undefined> = {},
): Promise<void> {
  const seal = createSeal(loadSecrets(folder, env, systemRandom()).keys.masterKey);
  const now = systemClock.now();
  const store = await sqliteGatewayStore({ dataDir: folder.root, clock: systemClock, logger: silentLogger });
  await Promise.all(
    secrets.map(({ n, secret }) => {
      const sealed = seal.seal(secret, sealContext(keyOf(n)));
      return store.secrets.rotate(keyOf(n), { sealed, now, graceEndsAt: now + 1e9, namespaceInUrl: false });
    }),
  );
  await store.close();
}

/** A stopped platform with `count` webhooks, each with a current and a previous secret. */
export async function withSecrets(
  count: number,
  env: Record<string, string | undefined> = {},
  real: ServiceName[] = [],
) {
  const platform = await testPlatform(...withStandIns({ env: { SVC_MASTER_KEY: undefined, ...env }, real }));
  const folder = dataFolder(platform.dataDir);
  await mkdir(folder.root, { recursive: true });
  ensureDataFolder(folder);
  const { masterKey } = loadSecrets(folder, env, systemRandom()).keys;
  for (const age of ['old', 'new'])
    await storeSecrets(
      folder,
      Array.from({ length: count }, (_, n) => ({ n, secret: `${age}-${n}` })),
      env,
    );
  return { platform, folder, masterKey };
}

/** Decrypts every secret with the keys that a start would have. */
export async function verifyAll({ dataDir }: TestPlatform, count: number, env = {}): Promise<void> {
  const { keys } = loadSecrets(dataFolder(dataDir), env, systemRandom());
  const seal = createSeal(keys.masterKey, keys.previousMasterKeys);
  const store = await sqliteGatewayStore({ dataDir, clock: systemClock, logger: silentLogger });
  const records = await store.secrets.list('default');
  await store.close();
  expect(records).toHaveLength(count);
  for (const record of records) {
    const n = record.event.slice(1);
    expect(seal.open(record.current, sealContext(record))).toBe(`new-${n}`);
    expect(seal.open(record.previous!, sealContext(record))).toBe(`old-${n}`);
  }
}
