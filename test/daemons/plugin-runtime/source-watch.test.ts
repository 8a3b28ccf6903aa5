import { expect, onTestFinished, test } from 'vitest';
import { watchSources } from '../../../src/daemons/plugin-runtime/source-watch.ts';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { eventually } from '../../support/webhook-senders.ts';

/** A watch of one file whose text the test sets. */
async function watch(textNow: () => string) {
  const changes: number[] = [];
  const watched = await watchSources({
    stamp: async () => new Map([['file', textNow()]]),
    changed: async () => void changes.push(performance.now()),
    logger: silentLogger,
  });
  onTestFinished(() => watched.close());
  return { changes, watched };
}

test('files that change continuously are announced at growing intervals', async () => {
  let writes = 0;
  const { changes } = await watch(() => String(writes++));
  await eventually(() => expect(changes.length).toBeGreaterThanOrEqual(4));
  const waits = changes.slice(1, 4).map((at, index) => at - changes[index]!);
  for (const [index, least] of [400, 800, 1600].entries())
    expect(waits[index]!).toBeGreaterThanOrEqual(least - 5);
});

test('a requested change is announced at once, however recent the previous one', async () => {
  let text = 'a';
  const { changes, watched } = await watch(() => text);
  for (const next of ['b', 'c', 'd', 'e', 'f']) {
    text = next;
    await watched.check();
  }
  expect(changes).toHaveLength(5);
});
