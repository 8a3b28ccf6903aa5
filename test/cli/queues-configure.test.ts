import { expect, test } from 'vitest';
import { QUEUE_DEFAULTS } from '../../src/contracts/index.ts';
import { testPlatform, withStandIns } from './platform.ts';

const SLOW = { timeout: 120_000 };

/** A running platform. `configure` changes the queue "orders", and returns the queue. */
async function start() {
  const config = { queues: { fixed: { maxAttempts: 2 } } };
  const { svc } = await testPlatform(...withStandIns({ config, real: ['gateway'] }));
  await svc('up', '-d');
  const configure = async (...flags: string[]) => {
    const { json } = await svc('queues', 'configure', 'orders', ...flags);
    expect(json).toMatchObject({ ok: true });
    return json.result;
  };
  return { svc, configure };
}

test('queues configure keeps the settings that it does not change', SLOW, async () => {
  const { svc, configure } = await start();
  const first = await configure('--max-attempts', '5', '--concurrency', '4', '--order', 'none');
  const kept = { ...QUEUE_DEFAULTS, maxAttempts: 5, concurrency: 4, order: 'none' };
  expect(first).toMatchObject({ settings: kept, settingsFrom: 'api' });

  const longer = await configure('--lease-ms', '60000');
  expect(longer.settings).toEqual({ ...kept, leaseMs: 60_000 });
  await svc('restart');
  const unlimited = await configure('--concurrency', 'none');
  expect(unlimited.settings).toEqual({ ...kept, leaseMs: 60_000, concurrency: null });
  const ordered = await configure('--order', 'key', '--max-attempts', '6');
  expect(ordered.settings).toEqual({ ...QUEUE_DEFAULTS, leaseMs: 60_000, maxAttempts: 6 });
  expect((await svc('queues', 'show', 'orders')).json.result).toEqual(ordered);

  const reset = await configure('--reset', '--max-lease-ms', '120000');
  expect(reset.settings).toEqual({ ...QUEUE_DEFAULTS, maxLeaseMs: 120_000 });
  const defaults = await configure('--max-lease-ms', String(QUEUE_DEFAULTS.maxLeaseMs));
  expect(defaults).toMatchObject({ settings: QUEUE_DEFAULTS, settingsFrom: 'default' });
});

test(
  'queues configure changes nothing if a setting is wrong or the queue is in svc.config.json',
  SLOW,
  async () => {
    const { svc, configure } = await start();
    const { settings } = await configure('--max-attempts', '5');
    for (const wrong of [
      ['--lease-ms', '10'],
      ['--concurrency', '0'],
      ['--order', 'random'],
    ]) {
      const refused = await svc('queues', 'configure', 'orders', '--max-attempts', '3', ...wrong);
      expect(refused.code).toBe(2);
    }
    expect((await svc('queues', 'show', 'orders')).json.result.settings).toEqual(settings);

    const refused = await svc('queues', 'configure', 'fixed', '--concurrency', '3');
    expect(refused.json).toMatchObject({ ok: false, error: { code: 'CONFLICT' } });
    const fixed = (await svc('queues', 'show', 'fixed')).json.result;
    expect(fixed).toMatchObject({ settings: { ...QUEUE_DEFAULTS, maxAttempts: 2 }, settingsFrom: 'config' });
  },
);
