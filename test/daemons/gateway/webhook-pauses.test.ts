import { expect, onTestFinished, test } from 'vitest';
import { WebhookPauses } from '../../../src/daemons/gateway/domain/webhooks/admin/pauses.ts';
import { ChangeFeed, POLL_MS } from '../../../src/daemons/membership/change-feed.ts';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import { sqliteGatewayStore } from '../../../src/store/sqlite/index.ts';
import { tempDir } from '../../support/daemon.ts';

const key = (event: string) => ({ namespaceId: 'default', pluginId: 'p', event, instanceId: '' });

test('a process without a notification sees a resume at its next check, also when another webhook was paused meanwhile', async () => {
  const clock = manualClock();
  const store = await sqliteGatewayStore({ dataDir: await tempDir(), clock, logger: silentLogger });
  onTestFinished(() => store.close());
  const member = {
    kind: 'gateway',
    version: '1',
    release: null,
    keys: null,
    leaseMs: null,
    isSole: false,
  } as const;
  async function open(instance: string) {
    const sharedAs = await store.members.join({ ...member, instance });
    let resumed = 0;
    const feed = await ChangeFeed.open({
      ...{
        store: store.feed,
        sharedAs,
        staleMs: 30_000,
        clock,
        logger: silentLogger,
      },
    });
    onTestFinished(() => feed.close());
    const pauses = await WebhookPauses.open({ cache: store.cache, feed, onResume: () => resumed++ });
    return { pauses, resumed: () => resumed };
  }
  const [here, there] = [await open('a'), await open('b')];
  await here.pauses.pause(key('a'));
  clock.advance(POLL_MS);
  await expect.poll(() => there.pauses.isPaused(key('a'))).toBe(true);

  await here.pauses.resume(key('a'));
  await here.pauses.pause(key('b'));
  clock.advance(POLL_MS);
  await expect.poll(() => there.pauses.isPaused(key('b'))).toBe(true);
  expect([there.pauses.isPaused(key('a')), there.resumed()]).toEqual([false, 1]);
});
