import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { AuditChain } from '../../../../src/kit/security/audit-chain.ts';
import { silentLogger } from '../../../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../../../src/kit/time/clock.ts';
import { sqliteGatewayStore } from '../../../../src/store/sqlite/index.ts';
import { tempDir } from '../../../support/daemon.ts';

/** Holds the syncs of write-ahead logs, which SQLite would otherwise make itself on the event loop. */
function holdSyncs() {
  const held: Array<() => void> = [];
  const sync = fs.fdatasync;
  const spy = vi.spyOn(fs, 'fdatasync').mockImplementation(((fd: number, done: fs.NoParamCallback) => {
    held.push(() => sync(fd, done));
  }) as typeof sync);
  syncBuiltinESMExports();
  onTestFinished(() => {
    spy.mockRestore();
    syncBuiltinESMExports();
  });
  return { held, release: () => held.splice(0).forEach((run) => void run()) };
}

test('an audit entry is acknowledged once it is synced, and the event loop does not wait for that', async () => {
  const options = { dataDir: await tempDir(), clock: systemClock, logger: silentLogger, shared: false };
  const store = await sqliteGatewayStore(options);
  const chain = new AuditChain('i'.repeat(40));
  const { held, release } = holdSyncs();
  const settled: string[] = [];
  const draft = {
    ...{ at: 1, actor: 'a', actorKind: 'access', tokenId: null, role: null, action: 'mcp.call' },
    ...{
      namespaceId: 'default',
      requestId: 'r',
      traceId: 't',
      outcome: 'succeeded',
      status: 200,
      digest: 'd',
    },
  };
  const added = ['tool:one', 'tool:two'].map((object) =>
    store.audit
      .append((head) => chain.link({ ...draft, object } as never, head))
      .then(() => settled.push(object)),
  );
  await expect.poll(() => held.length).toBe(1);
  await sleep(50);
  expect(settled).toEqual([]);
  release();
  await Promise.all(added);
  // Both entries shared one transaction and one sync.
  expect(settled).toEqual(['tool:one', 'tool:two']);
  await store.close();
});
