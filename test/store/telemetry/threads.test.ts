import { execFile } from 'node:child_process';
import { getPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { manualClock } from '../../../src/kit/time/clock.ts';
import { createTelemetryReader } from '../../../src/store/telemetry/reader.ts';
import { startTelemetryWriter } from '../../../src/store/telemetry/writer.ts';
import { tempDir } from '../../support/daemon.ts';
import { logRecord as log } from '../../support/telemetry.ts';

const RETENTION = { logsDays: 7, analyticsDays: 400, telemetryMaxBytes: 1e9 };

describe('threads', () => {
  test('the reader finds what the writer stored, and both threads end on close', async () => {
    const dataDir = await tempDir();
    const dropped: unknown[] = [];
    const writer = startTelemetryWriter({
      dataDir,
      postgresUrl: null,
      retention: RETENTION,
      onDropped: (...args) => dropped.push(args),
    });
    const reader = createTelemetryReader({ dataDir, clock: manualClock() });
    onTestFinished(() => reader.close());
    const time = Date.now();
    for (let n = 0; n < 50; n++) {
      writer.push('gateway', Buffer.from(`${JSON.stringify(log({ message: `line ${n}`, time }))}\n`));
    }
    await writer.flush();
    expect((await reader.logs({ search: 'line' }, { limit: 3, offset: 0 })).total).toBe(50);
    expect(await reader.counts()).toEqual({ 'logs.kept': 50 });
    await writer.close();
    writer.push('gateway', Buffer.from('{}\n'));
    await writer.flush();
    expect(dropped).toEqual([]);
  });

  test('the writer and the reader report a file that cannot be used', async () => {
    const dataDir = await tempDir();
    const { writeFile } = await import('node:fs/promises');
    await writeFile(`${dataDir}/telemetry.db`, 'this is no database, whatever its name says'.repeat(100));
    const told = Promise.withResolvers<unknown[]>();
    const writer = startTelemetryWriter({
      dataDir,
      postgresUrl: null,
      retention: RETENTION,
      onDropped: (...args) => told.resolve(args),
    });
    onTestFinished(() => writer.close());
    expect(await told.promise).toEqual([1, expect.stringContaining('telemetry.db')]);
    const reader = createTelemetryReader({ dataDir, clock: manualClock() });
    onTestFinished(() => reader.close());
    await expect(reader.stats({})).rejects.toMatchObject({ code: 'STORE_ERROR' });
  });

  test.runIf(process.platform === 'linux')(
    'the writer lowers its priority, but keeps a lower one of the platform',
    async () => {
      const program = fileURLToPath(new URL('./keep-records.ts', import.meta.url));
      const threadsUnder = async (niceness: number): Promise<Set<number>> => {
        const command = ['-n', String(niceness), process.execPath, program, await tempDir()];
        const { stdout } = await promisify(execFile)('nice', command);
        return new Set(stdout.split(' ').map(Number));
      };
      const own = getPriority();
      expect(await threadsUnder(0)).toEqual(new Set([own, Math.max(own, 10)]));
      expect(await threadsUnder(15)).toEqual(new Set([Math.min(own + 15, 19)]));
    },
  );
});
