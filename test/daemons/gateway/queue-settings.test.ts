import { expect, onTestFinished, test } from 'vitest';
import { QUEUE_DEFAULTS } from '../../../src/contracts/index.ts';
import { QueueSettingsCache } from '../../../src/daemons/gateway/domain/queues/queue-settings.ts';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../../src/kit/time/clock.ts';
import { sqliteGatewayStore } from '../../../src/store/sqlite/index.ts';
import { tempDir } from '../../support/daemon.ts';

test('settings that a newer version stored do not stop an older one', async () => {
  const store = await sqliteGatewayStore({
    ...{ dataDir: await tempDir(), clock: systemClock, logger: silentLogger },
  });
  onTestFinished(() => store.close());
  const key = { namespaceId: 'default', queue: 'orders' };
  await store.queues.configure(key, JSON.stringify({ maxAttempts: 3, ofALaterVersion: true }));
  const feed = { follow: () => {}, spread: async () => {} };
  const settings = await QueueSettingsCache.open({ store: store.queues, feed, config: {} });
  expect(settings.of(key)).toEqual({ ...QUEUE_DEFAULTS, maxAttempts: 3 });
});
