import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { MemberStore, NewMember } from '../../../src/store/ports/index.ts';
import { type OpenDriver, openFresh, times } from './driver.ts';

const member = (instance: string, more: Partial<NewMember> = {}): NewMember => ({
  kind: 'gateway',
  instance,
  version: '1.0.0',
  release: null,
  keys: null,
  leaseMs: 10_000,
  isSole: false,
  ...more,
});

/** What every driver of MemberStore does. */
export function describeMembers(name: string, open: OpenDriver<MemberStore>): void {
  describe(`members: ${name}`, () => {
    test('a node that joins again ends its further processes, and no others', async () => {
      const { port } = await openFresh(open);
      await port.join(member('a'));
      await port.join(member('a/2'));
      await port.join(member('a%/2'));
      const others = [await port.join(member('ab')), await port.join(member('b/2'))];
      const second = await port.join(member('b/3'));
      const again = await port.join(member('a'));
      expect(await port.unended('gateway')).toEqual([3, ...others, second, again]);
      // A further process ends only its own predecessor.
      const next = await port.join(member('b/2'));
      expect(await port.unended('gateway')).toEqual([3, others[0], second, again, next]);
    });

    test('a member is live with its data until it leaves', async () => {
      const { port, clock } = await openFresh(open);
      const keys = { master: 'm', jwt: null, previousJwt: 'p', internal: 'i' };
      const fence = await port.join(member('a', { release: 'r1', keys }));
      await port.renew(fence, { leaseMs: 10_000, url: 'http://10.0.0.1:4000' });
      expect(await port.live('gateway')).toEqual([
        {
          ...{ fence, kind: 'gateway', instance: 'a', version: '1.0.0', release: 'r1', keys },
          ...{ url: 'http://10.0.0.1:4000', startedAt: clock.now(), leaseUntil: clock.now() + 10_000 },
          isDraining: false,
        },
      ]);
      await port.renew(fence, { leaseMs: 10_000, url: 'http://10.0.0.1:4000', isDraining: true });
      expect(await port.live('gateway')).toMatchObject([{ url: 'http://10.0.0.1:4000', isDraining: true }]);
      expect(await port.live('workflow')).toEqual([]);
      await port.leave(fence);
      expect(await port.live('gateway')).toEqual([]);
      expect(await port.unswept('gateway')).toEqual([fence]);
      expect(await port.renew(fence, { leaseMs: 10_000, url: null })).toBe(false);
    });

    test('a new boot of a node ends the previous one at once, and no other member', async () => {
      const { port } = await openFresh(open);
      const [first, other, workflow] = [
        await port.join(member('a')),
        await port.join(member('b')),
        await port.join(member('a', { kind: 'workflow' })),
      ];
      const second = await port.join(member('a'));
      expect(await port.unended('gateway')).toEqual([other, second]);
      expect(await port.unended('workflow')).toEqual([workflow]);
      expect(await port.renew(first, { leaseMs: 10_000, url: null })).toBe(false);
      expect(await port.renew(other, { leaseMs: 10_000, url: null })).toBe(true);
    });

    test('a sole member ends every earlier one of its kind', async () => {
      const { port } = await openFresh(open);
      await port.join(member('a'));
      const workflow = await port.join(member('b', { kind: 'workflow' }));
      const sole = await port.join(member('c', { isSole: true, leaseMs: null }));
      expect(await port.unended('gateway')).toEqual([sole]);
      expect(await port.unended('workflow')).toEqual([workflow]);
    });

    test('an expired member is not live, and only another member ends it', async () => {
      const { port, clock } = await openFresh(open);
      const silent = await port.join(member('a'));
      const own = await port.join(member('b'));
      const lasting = await port.join(member('c', { leaseMs: null }));
      clock.advance(9_999);
      expect(await port.endExpired('gateway', own)).toBe(0);
      clock.advance(1);
      expect((await port.live('gateway')).map(({ fence }) => fence)).toEqual([lasting]);
      expect(await port.endExpired('workflow', own)).toBe(0);
      expect(await port.unended('gateway')).toEqual([silent, own, lasting]);
      expect(await port.endExpired('gateway', own)).toBe(1);
      expect(await port.unended('gateway')).toEqual([own, lasting]);
      expect(await port.renew(own, { leaseMs: 10_000, url: null })).toBe(true);
      expect(await port.renew(silent, { leaseMs: 10_000, url: null })).toBe(false);
    });

    test('an ended member is kept until its rows are cleaned up, and its fence is not reused', async () => {
      const { port, reopen } = await openFresh(open);
      const fence = await port.join(member('a'));
      const live = await port.join(member('b'));
      await port.leave(fence);
      const again = await reopen();
      expect(await again.unswept('gateway')).toEqual([fence]);
      await again.swept([fence, live]);
      expect(await again.unswept('gateway')).toEqual([]);
      expect(await again.unended('gateway')).toEqual([live]);
      await again.leave(live);
      await again.swept([live]);
      expect(await again.join(member('a'))).toBeGreaterThan(live);
    });

    test('the last of several concurrent boots of a node stays', async () => {
      const { port, second } = await openFresh(open);
      const other = await second();
      const fences = await times(20, (i) => (i % 2 ? port : other).join(member('a')));
      expect(new Set(fences).size).toBe(20);
      expect(await port.unended('gateway')).toEqual([Math.max(...fences)]);
    });

    type Step = { act: 'join' | 'leave' | 'renew' | 'expire'; node: number } | { act: 'wait'; ms: number };
    const node = fc.integer({ min: 0, max: 2 });
    const step: fc.Arbitrary<Step> = fc.oneof(
      fc.record({ act: fc.constantFrom('join', 'leave', 'renew', 'expire'), node }),
      fc.record({ act: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 12_000 }) }),
    );

    test('a node never has two unended fences, and an ended fence never renews', async () => {
      const { port, clock } = await openFresh(open);
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
          for (const fence of await port.unended('gateway')) await port.leave(fence);
          const given: Array<{ node: number; fence: number }> = [];
          const latest = (of: number): number | undefined => given.findLast((one) => one.node === of)?.fence;
          for (const one of steps) {
            if (one.act === 'wait') clock.advance(one.ms);
            else if (one.act === 'join')
              given.push({ node: one.node, fence: await port.join(member(`n${one.node}`)) });
            else await applyTo(port, one.act, latest(one.node));
            const unended = await port.unended('gateway');
            const nodes = given.filter(({ fence }) => unended.includes(fence)).map((entry) => entry.node);
            expect(new Set(nodes).size).toBe(nodes.length);
          }
          const unended = await port.unended('gateway');
          for (const { fence } of given)
            expect(await port.renew(fence, { leaseMs: 1, url: null })).toBe(unended.includes(fence));
        }),
        { numRuns: 25 },
      );
    });
  });
}

async function applyTo(port: MemberStore, act: 'leave' | 'renew' | 'expire', fence = -1): Promise<void> {
  if (act === 'leave') await port.leave(fence);
  else if (act === 'renew') await port.renew(fence, { leaseMs: 10_000, url: null });
  else await port.endExpired('gateway', fence);
}
