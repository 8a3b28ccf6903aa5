import { describe, expect, test } from 'vitest';
import type { TelemetryStore } from '../../../../src/store/ports/telemetry.ts';
import { sqliteTelemetryStore } from '../../../../src/store/sqlite/telemetry/store.ts';
import { tempDir } from '../../../support/daemon.ts';
import { append, logRecord as log, NOON, openTelemetry } from '../../../support/telemetry.ts';
import { describeTelemetry } from '../../suites/telemetry.ts';

const open = async (): Promise<TelemetryStore> => openTelemetry(await tempDir());

describeTelemetry('sqlite', async ({ dataDir }) => {
  const store = await sqliteTelemetryStore({ dataDir });
  return { port: store, close: () => store.close() };
});

describe('retention', () => {
  async function pruneAll(store: TelemetryStore, limits: Partial<Parameters<TelemetryStore['prune']>[0]>) {
    let calls = 0;
    while (await store.prune({ logsBefore: 0, eventsBefore: 0, maxBytes: 1e9, ...limits })) calls++;
    return calls;
  }

  test('old records are deleted in chunks, also from the search index', async () => {
    const store = await open();
    for (let n = 0; n < 5; n++) {
      await append(
        store,
        Array.from({ length: 1000 }, (_, i) => log({ time: NOON + n * 1000 + i, message: `word${n}` })),
      );
    }
    expect(await pruneAll(store, { logsBefore: NOON + 4000 })).toBeGreaterThan(1);
    expect((await store.logs({}, { limit: 1, offset: 0 })).total).toBe(1000);
    expect((await store.logs({ search: 'word1' }, { limit: 1, offset: 0 })).total).toBe(0);
    expect((await store.logs({ search: 'word4' }, { limit: 1, offset: 0 })).total).toBe(1000);
  });
});
