import { describe, expect, test } from 'vitest';
import { SANDBOXES, startBackend } from './support.ts';

describe.each(SANDBOXES)('under the sandbox "%s"', (sandbox) => {
  test.each([
    'floodsFrames',
    'floodsLargeFrames',
    'printsAGigabyte',
    'blocks',
    'heap',
    'buffers',
    'forkBomb',
    'floodsLog',
  ])('%s leaves the service most of its time, and other plugins are served', async (name) => {
    const platform = await startBackend({ sandbox, config: { maxProcesses: 1 } });
    await platform.call('handlers.ts#nothing', { plugin: 'good' });
    const attack = platform.call(`attacks.js#${name}`, { timeoutMs: 2500 }).catch((error) => error.code);
    // Processor time of this thread, not how long its loop was busy: that counts waiting for a processor too.
    const before = process.threadCpuUsage();
    const startedAt = performance.now();
    let served = 0;
    while (performance.now() < startedAt + 2000) {
      await platform.call('handlers.ts#slowly', { plugin: 'good', input: 5 });
      served++;
    }
    const { user, system } = process.threadCpuUsage(before);
    const spent = (user + system) / 1000 / (performance.now() - startedAt);
    await attack;
    expect(served).toBeGreaterThan(20);
    expect(spent).toBeLessThan(0.6);
  });
});
