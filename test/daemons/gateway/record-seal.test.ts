import { randomBytes } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { resealSecrets } from '../../../src/daemons/gateway/domain/vault/reseal.ts';
import { RecordSeal } from '../../../src/daemons/gateway/domain/webhooks/verify/record-seal.ts';
import { createSeal, masterKeyId, sealingKeyId } from '../../../src/kit/security/keys.ts';
import { systemRandom } from '../../../src/kit/security/random.ts';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../../src/kit/time/clock.ts';
import { sqliteGatewayStore } from '../../../src/store/sqlite/index.ts';
import { sqliteSealedSecrets } from '../../../src/store/sqlite/svc/sealed-secrets.ts';
import { tempDir } from '../../support/daemon.ts';

const newKey = () => randomBytes(32).toString('base64url');

async function openStore() {
  const dataDir = await tempDir();
  const store = await sqliteGatewayStore({ dataDir, clock: systemClock, logger: silentLogger });
  onTestFinished(() => store.close());
  const start = (masterKey: string, previousMasterKeys: string[] = []) =>
    RecordSeal.create({
      store: store.secrets,
      seal: createSeal(masterKey, previousMasterKeys),
      ...{ masterKey, previousMasterKeys, random: systemRandom(), clock: systemClock, logger: silentLogger },
    });
  /** Replaces the master key, as `svc keys rotate` does. */
  const rotate = async (from: string, to: string) => {
    const sealed = await sqliteSealedSecrets(dataDir, silentLogger);
    const values = await resealSecrets({
      store: sealed,
      seal: createSeal(to, [from]),
      replaced: new Set([masterKeyId(from)]),
    });
    const rows = await sealed.after('webhook_secret', null, 10);
    await sealed.close();
    return { values, keys: [...new Set(rows.map(({ values }) => sealingKeyId(values.current!)))] };
  };
  return { store, start, rotate };
}

test('records stay readable after a rotation, and new ones get a new key', async () => {
  const { start, rotate } = await openStore();
  const [first, second] = [newKey(), newKey()];
  const before = (await start(first)).seal('old', 'c');
  expect(await rotate(first, second)).toEqual({ values: 1, keys: [masterKeyId(second)] });
  const after = await start(second);
  expect(await after.open(before, 'c')).toBe('old');
  expect(sealingKeyId(after.seal('new', 'c'))).not.toBe(sealingKeyId(before));
  expect(await (await start(second)).open(after.seal('new', 'c'), 'c')).toBe('new');
  await expect(after.open(before, 'another')).rejects.toThrow();
});

test('gateways that start together read what each other wrote', async () => {
  const { start } = await openStore();
  const key = newKey();
  const seals = await Promise.all([start(key), start(key), start(key)]);
  for (const writer of seals)
    for (const reader of seals) expect(await reader.open(writer.seal('x', 'c'), 'c')).toBe('x');
});

test('records that were encrypted with the master key itself are readable', async () => {
  const { start } = await openStore();
  const key = newKey();
  const sealed = createSeal(key).seal('x', 'c');
  expect(await (await start(key)).open(sealed, 'c')).toBe('x');
  expect(await (await start(newKey(), [key])).open(sealed, 'c')).toBe('x');
});

test('a damaged key stops neither a start nor a rotation', async () => {
  const { store, start, rotate } = await openStore();
  const [first, second] = [newKey(), newKey()];
  const lost = (await start(first)).seal('x', 'c');
  const [row] = await store.secrets.list('');
  await store.secrets.revoke(row!);
  const sealed = `${row!.current.slice(0, -8)}AAAAAAAA`;
  await store.secrets.rotate(row!, { sealed, now: 0, graceEndsAt: 0, namespaceInUrl: false });
  const again = await start(first);
  await expect(again.open(lost, 'c')).rejects.toThrow('No master key');
  const kept = again.seal('y', 'c');
  expect(await rotate(first, second)).toEqual({ values: 2, keys: [masterKeyId(second)] });
  expect(await (await start(second)).open(kept, 'c')).toBe('y');
});
