import { expect, onTestFinished, test, vi } from 'vitest';
import { LEASE_MS, Membership, RENEW_MS } from '../../../src/daemons/membership/membership.ts';
import type { PlatformError } from '../../../src/kit/errors/errors.ts';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { type ManualClock, manualClock } from '../../../src/kit/time/clock.ts';
import type { MemberStore } from '../../../src/store/ports/index.ts';
import { sqliteGatewayStore } from '../../../src/store/sqlite/index.ts';
import { tempDir } from '../../support/daemon.ts';

/** A store whose calls can be made to fail, as when its machine is cut off. */
async function openStore(clock: ManualClock) {
  const store = await sqliteGatewayStore({ dataDir: await tempDir(), clock, logger: silentLogger });
  onTestFinished(() => store.close());
  return store.members;
}

async function join(store: MemberStore, clock: ManualClock, instance: string, isSole = false) {
  const lost: PlatformError[] = [];
  const membership = await Membership.join({
    ...{ store, clock, logger: silentLogger },
    member: { kind: 'gateway', instance, version: '1', release: null, keys: null, isSole },
    onLost: (error) => lost.push(error),
  });
  onTestFinished(() => membership.leave());
  return { membership, lost };
}

/** Moves the clock in steps, letting renewals be written in between. */
async function pass(clock: ManualClock, ms: number, renewed: () => unknown = () => {}): Promise<void> {
  for (let left = ms; left > 0; left -= RENEW_MS) {
    clock.advance(Math.min(left, RENEW_MS));
    await new Promise((resolve) => setTimeout(resolve, 20));
    await renewed();
  }
}

/** The same store, until it is cut off. */
function cuttable(store: MemberStore): { store: MemberStore; cut(isCut: boolean): void } {
  let isCut = false;
  return {
    store: {
      ...store,
      renew: (...args) => (isCut ? Promise.reject(new Error('cut off')) : store.renew(...args)),
    },
    cut: (now) => {
      isCut = now;
    },
  };
}

test('a member renews its lease and stays live', async () => {
  const clock = manualClock();
  const store = await openStore(clock);
  const { membership } = await join(store, clock, 'a');
  await pass(clock, 4 * LEASE_MS);
  expect(membership.require()).toBe(membership.fence);
  expect(await store.live('gateway')).toMatchObject([{ fence: membership.fence }]);
});

test('a sole member has no lease to lose', async () => {
  const clock = manualClock();
  const store = await openStore(clock);
  const { membership } = await join(store, clock, 'a', true);
  clock.advance(10 * LEASE_MS);
  expect(membership.isHeld).toBe(true);
  expect(await store.live('gateway')).toMatchObject([{ leaseUntil: null }]);
});

test('a member cut off from the store stops by its own clock, and goes on when nobody took over', async () => {
  const clock = manualClock();
  const { store, cut } = cuttable(await openStore(clock));
  const { membership, lost } = await join(store, clock, 'a');
  cut(true);
  await pass(clock, LEASE_MS - 1);
  expect(membership.isHeld).toBe(true);
  clock.advance(1);
  expect(() => membership.require()).toThrow(/lost its lease/);
  cut(false);
  await pass(clock, 2 * RENEW_MS);
  // The renewal itself takes real time.
  await expect.poll(() => membership.isHeld).toBe(true);
  expect(lost).toEqual([]);
});

test('its own clock, not the wall clock, tells a member that its lease is over', async () => {
  const clock = manualClock();
  const store = await openStore(clock);
  const { membership } = await join(store, clock, 'a');
  clock.jump(clock.now() + 3_600_000);
  expect(membership.isHeld).toBe(true);
  clock.jump(clock.now() - 7_200_000);
  clock.advance(LEASE_MS);
  expect(membership.isHeld).toBe(false);
});

test('the rows of a silent member are swept once by another, and the silent one must stop', async () => {
  const clock = manualClock();
  const real = await openStore(clock);
  const { store, cut } = cuttable(real);
  const silent = await join(store, clock, 'a');
  const other = await join(real, clock, 'b');
  const swept: number[] = [];
  other.membership.onEnded(async () => void swept.push(clock.now()));
  await pass(clock, LEASE_MS);
  expect(swept).toEqual([]);
  cut(true);
  await pass(clock, LEASE_MS + 2 * RENEW_MS);
  await vi.waitFor(() => expect(swept).toHaveLength(1));
  expect(await real.live('gateway')).toMatchObject([{ instance: 'b' }]);
  expect(silent.membership.isHeld).toBe(false);
  cut(false);
  await pass(clock, RENEW_MS);
  await vi.waitFor(() => expect(silent.lost).toHaveLength(1));
  expect(silent.lost[0]!.message).toMatch(/Another process has ended this gateway.*SVC_INSTANCE/);
  expect(() => silent.membership.require()).toThrow(/lost its lease/);
  await pass(clock, LEASE_MS);
  expect(swept).toHaveLength(1);
});

test('after an outage of the store no member ends another before it was in touch for a whole lease', async () => {
  const clock = manualClock();
  const real = await openStore(clock);
  const a = cuttable(real);
  const b = cuttable(real);
  const early = await join(a.store, clock, 'a');
  const late = await join(b.store, clock, 'b');
  await pass(clock, LEASE_MS);
  a.cut(true);
  b.cut(true);
  await pass(clock, 6 * LEASE_MS);
  a.cut(false);
  await pass(clock, 2 * RENEW_MS);
  b.cut(false);
  await pass(clock, 4 * LEASE_MS);
  expect([early.membership.isHeld, late.membership.isHeld]).toEqual([true, true]);
  expect([...early.lost, ...late.lost]).toEqual([]);
});

test('a renewal that the store answers only after an outage does not let its member end others at once', async () => {
  const clock = manualClock();
  const real = await openStore(clock);
  const outage = Promise.withResolvers<void>();
  let isHanging = false;
  const hanging: MemberStore = {
    ...real,
    async renew(...args) {
      if (isHanging) await outage.promise;
      return real.renew(...args);
    },
  };
  const b = cuttable(real);
  const early = await join(hanging, clock, 'a');
  const late = await join(b.store, clock, 'b');
  await pass(clock, 2 * LEASE_MS);
  isHanging = true;
  b.cut(true);
  await pass(clock, 2 * LEASE_MS);
  isHanging = false;
  outage.resolve();
  await pass(clock, RENEW_MS);
  b.cut(false);
  await pass(clock, 4 * LEASE_MS);
  expect([early.membership.isHeld, late.membership.isHeld]).toEqual([true, true]);
  expect([...early.lost, ...late.lost]).toEqual([]);
});

test('an outage that outlasts the lease of only one member does not let the other end it', async () => {
  const clock = manualClock();
  const real = await openStore(clock);
  const [a, b] = [cuttable(real), cuttable(real)];
  const early = await join(a.store, clock, 'a');
  const late = await join(b.store, clock, 'b');
  await pass(clock, 2 * LEASE_MS);
  a.cut(true);
  await pass(clock, RENEW_MS);
  b.cut(true);
  await pass(clock, 2 * RENEW_MS);
  b.cut(false);
  await pass(clock, RENEW_MS);
  a.cut(false);
  await pass(clock, 4 * LEASE_MS);
  expect([early.membership.isHeld, late.membership.isHeld]).toEqual([true, true]);
  expect([...early.lost, ...late.lost]).toEqual([]);
});

test('a restart of the same node ends the fence of its predecessor without waiting for its lease', async () => {
  const clock = manualClock();
  const store = await openStore(clock);
  const former = await join(store, clock, 'a');
  const next = await join(store, clock, 'a');
  const swept: number[] = [];
  next.membership.onEnded(async () => void swept.push(...(await store.unswept('gateway'))));
  await next.membership.sweep();
  expect(swept).toEqual([former.membership.fence]);
  await expect.poll(() => store.unswept('gateway')).toEqual([]);
});
