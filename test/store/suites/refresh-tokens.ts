import { describe, expect, test } from 'vitest';
import { days, seconds } from '../../../src/kit/time/duration.ts';
import type { RefreshTokenRecord, RefreshTokenStore } from '../../../src/store/ports/index.ts';
import { type OpenDriver, openFresh, times } from './driver.ts';

const GRACE_MS = seconds(10);

/** What every driver of RefreshTokenStore does. @spec docs/security.md "Refresh tokens" */
export function describeRefreshTokens(name: string, open: OpenDriver<RefreshTokenStore>): void {
  describe(`refresh tokens: ${name}`, () => {
    const token = (
      tokenHash: string,
      now: number,
      more: Partial<RefreshTokenRecord> = {},
    ): RefreshTokenRecord => ({
      tokenHash,
      familyId: 'family',
      clientId: 'client',
      createdAt: now,
      expiresAt: now + days(30),
      spentAt: null,
      ...more,
    });

    test('a token is found until it expires, also after a restart', async () => {
      const { port, clock, reopen } = await openFresh(open);
      const added = token('h1', clock.now());
      await port.add(added);
      const reopened = await reopen();
      expect(await reopened.find('h1')).toEqual(added);
      clock.advance(days(30));
      expect(await reopened.find('h1')).toBeUndefined();
      expect(await reopened.rotate('h1', token('h2', clock.now()), clock.now(), GRACE_MS)).toBe('unknown');
      expect(await reopened.find('h2')).toBeUndefined();
    });

    test('one of several concurrent rotations uses the token, and the others get successors as repetitions', async () => {
      const { port, clock, second } = await openFresh(open);
      const other = await second();
      await port.add(token('h', clock.now()));
      const rotate = (i: number) =>
        (i % 2 ? port : other).rotate('h', token(`h${i}`, clock.now()), clock.now(), GRACE_MS);
      const outcomes = await times(50, rotate);
      expect(outcomes.filter((outcome) => outcome === 'rotated')).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome === 'repeated')).toHaveLength(49);
      const successors = await times(50, (i) => port.find(`h${i}`));
      expect(successors.every((found) => found?.spentAt === null)).toBe(true);
    });

    test('after the grace period, a used token is reported as reused and gets no successor', async () => {
      const { port, clock } = await openFresh(open);
      const rotate = (next: string) => port.rotate('h1', token(next, clock.now()), clock.now(), GRACE_MS);
      await port.add(token('h1', clock.now()));
      expect(await rotate('h2')).toBe('rotated');
      const spentAt = clock.now();
      clock.advance(GRACE_MS - 1);
      expect(await rotate('h3')).toBe('repeated');
      clock.advance(1);
      expect(await rotate('h4')).toBe('reused');
      expect(await port.find('h4')).toBeUndefined();
      expect(await port.find('h1')).toMatchObject({ spentAt });
    });

    test('revoking a family or a client revokes all of its tokens and no others', async () => {
      const { port, clock } = await openFresh(open);
      await port.add(token('a1', clock.now(), { familyId: 'a' }));
      await port.rotate('a1', token('a2', clock.now(), { familyId: 'a' }), clock.now(), GRACE_MS);
      await port.add(token('b', clock.now(), { familyId: 'b' }));
      await port.add(token('c', clock.now(), { familyId: 'c', clientId: 'other' }));
      expect(await port.revokeFamily('a')).toBe(2);
      expect(await port.find('a2')).toBeUndefined();
      expect(await port.revokeClient('client')).toBe(1);
      expect(await port.find('b')).toBeUndefined();
      expect(await port.find('c')).toBeDefined();
    });

    test.each([
      ['family', (port: RefreshTokenStore, round: number) => port.revokeFamily(`family-${round}`)],
      ['client', (port: RefreshTokenStore, round: number) => port.revokeClient(`client-${round}`)],
    ])('a rotation that races the revocation of its %s leaves no token behind', async (_, revoke) => {
      const { port, clock } = await openFresh(open);
      for (let round = 0; round < 20; round++) {
        const login = { familyId: `family-${round}`, clientId: `client-${round}` };
        await port.add(token(`first-${round}`, clock.now(), login));
        const [revoked, outcome] = await Promise.all([
          revoke(port, round),
          port.rotate(`first-${round}`, token(`next-${round}`, clock.now(), login), clock.now(), GRACE_MS),
        ]);
        expect(['1 unknown', '2 rotated']).toContain(`${revoked} ${outcome}`);
        expect(await port.find(`next-${round}`)).toBeUndefined();
      }
    });

    test('expired tokens are deleted', async () => {
      const { port, clock } = await openFresh(open);
      await port.add(token('h1', clock.now()));
      await port.add(token('h2', clock.now() + 1));
      expect(await port.prune(clock.now() + days(30) - 1)).toBe(0);
      expect(await port.prune(clock.now() + days(30))).toBe(1);
      expect(await port.find('h2')).toBeDefined();
    });
  });
}
