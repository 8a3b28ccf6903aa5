import { expect, onTestFinished, test, vi } from 'vitest';
import {
  LocalExecutionClaims,
  StoredExecutionClaims,
} from '../../../src/daemons/gateway/domain/hosts/execution-claims.ts';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../../src/kit/time/clock.ts';
import { sqliteGatewayStore } from '../../../src/store/sqlite/index.ts';
import { tempDir } from '../../support/daemon.ts';

async function gateways() {
  const store = await sqliteGatewayStore({
    ...{ dataDir: await tempDir(), clock: systemClock, logger: silentLogger },
  });
  onTestFinished(() => store.close());
  const open = async (instance: string) => {
    const fence = await store.members.join({
      ...{
        kind: 'gateway',
        instance,
        version: '1',
        release: null,
        keys: null,
        leaseMs: 10_000,
        isSole: false,
      },
    });
    const claims = new StoredExecutionClaims({
      ...{ cache: store.cache, members: store.members, logger: silentLogger },
      fence: { require: () => fence },
    });
    return { fence, claims };
  };
  return { store, a: await open('a'), b: await open('b') };
}

const CONFLICT = { code: 'CONFLICT', message: expect.stringContaining('is already running') };

test('an id is claimed once over all gateways, until it is released', async () => {
  const { a, b } = await gateways();
  const release = await a.claims.take('e1');
  await expect(b.claims.take('e1')).rejects.toMatchObject(CONFLICT);
  release();
  await vi.waitFor(() => b.claims.take('e1'));
});

test('a sweep releases the claims of gateways that have ended, and no others', async () => {
  const { store, a, b } = await gateways();
  await a.claims.take('of-a');
  await b.claims.take('of-b');
  await store.members.leave(a.fence);
  await b.claims.sweep();
  await b.claims.take('of-a');
  await expect(b.claims.take('of-b')).rejects.toMatchObject(CONFLICT);
});

test('a gateway whose claim was taken over does not release the claim of its successor', async () => {
  const { store, a, b } = await gateways();
  const release = await a.claims.take('e1');
  await store.members.leave(a.fence);
  await b.claims.sweep();
  await b.claims.take('e1');
  const read = vi.spyOn(store.cache, 'get');
  release();
  await vi.waitFor(() => expect(read).toHaveResolved());
  await expect(b.claims.take('e1')).rejects.toMatchObject(CONFLICT);
});

test('a gateway alone claims in memory', async () => {
  const claims = new LocalExecutionClaims();
  const release = await claims.take('e1');
  await expect(claims.take('e1')).rejects.toMatchObject(CONFLICT);
  release();
  await claims.take('e1');
});
