import { describe, expect, test } from 'vitest';
import { hours } from '../../../src/kit/time/duration.ts';
import type { SecretKey, WebhookSecretStore } from '../../../src/store/ports/index.ts';
import { type OpenDriver, openFresh, times } from './driver.ts';

const KEY: SecretKey = { namespaceId: 'acme', pluginId: '@acme/orders', event: 'created', instanceId: '' };

/** What every driver of WebhookSecretStore does. @spec States: Webhook secret */
export function describeWebhookSecrets(name: string, open: OpenDriver<WebhookSecretStore>): void {
  describe(`webhook secrets: ${name}`, () => {
    const next = (sealed: string, now: number) => ({
      sealed,
      now,
      graceEndsAt: now + hours(24),
      namespaceInUrl: false,
    });

    test('the first secret has no previous one, and the next keeps it, also after a restart', async () => {
      const { port, clock, reopen } = await openFresh(open);
      expect(await port.find(KEY)).toBeUndefined();
      expect(await port.rotate(KEY, next('one', clock.now()))).toEqual({
        rotated: false,
        namespaceInUrl: false,
      });
      expect(await port.find(KEY)).toEqual({
        ...KEY,
        current: 'one',
        previous: null,
        previousExpiresAt: null,
        previousUsedAt: null,
        lapsed: null,
        rotatedAt: clock.now(),
        namespaceInUrl: false,
      });

      const graceEndsAt = clock.now() + hours(24);
      expect(await port.rotate(KEY, { ...next('two', clock.now()), namespaceInUrl: true })).toEqual({
        rotated: true,
        namespaceInUrl: true,
      });
      expect(await (await reopen()).find(KEY)).toEqual({
        ...KEY,
        current: 'two',
        previous: 'one',
        previousExpiresAt: graceEndsAt,
        previousUsedAt: null,
        lapsed: null,
        rotatedAt: clock.now(),
        namespaceInUrl: true,
      });
    });

    test('whether the URL may name the namespace is unchanged unless specified', async () => {
      const { port } = await openFresh(open);
      const said: Array<boolean | undefined> = [undefined, true, undefined, false, undefined];
      const kept: boolean[] = [];
      for (const namespaceInUrl of said)
        kept.push((await port.rotate(KEY, { ...next('sealed', 0), namespaceInUrl })).namespaceInUrl);
      expect(kept).toEqual([false, true, true, false, false]);
      expect((await port.find(KEY))!.namespaceInUrl).toBe(false);
    });

    test('the previous secret is not accepted from the end of its grace period on', async () => {
      const { port, clock } = await openFresh(open);
      await port.rotate(KEY, next('one', clock.now()));
      await port.rotate(KEY, next('two', clock.now()));
      clock.advance(hours(24) - 1);
      expect((await port.find(KEY))?.previous).toBe('one');
      clock.advance(1);
      expect(await port.find(KEY)).toMatchObject({
        current: 'two',
        previous: null,
        previousExpiresAt: null,
        lapsed: 'one',
      });
      expect(await port.list('acme')).toMatchObject([{ current: 'two', previous: null }]);
    });

    test('the last use of the previous secret is kept until the next rotation', async () => {
      const { port, clock } = await openFresh(open);
      await port.rotate(KEY, next('one', clock.now()));
      await port.rotate(KEY, next('two', clock.now()));
      await port.previousUsed(KEY, clock.now() + 5);
      expect((await port.find(KEY))?.previousUsedAt).toBe(clock.now() + 5);
      clock.advance(hours(25));
      expect((await port.find(KEY))?.previousUsedAt).toBe(clock.now() - hours(25) + 5);
      await port.rotate(KEY, next('three', clock.now()));
      expect((await port.find(KEY))?.previousUsedAt).toBeNull();
    });

    test('each concurrent rotation replaces the secret once, and the last two secrets remain', async () => {
      const { port, clock, second } = await openFresh(open);
      const other = await second();
      const rotations = await times(50, (i) =>
        (i % 2 ? port : other).rotate(KEY, next(`s${i}`, clock.now())),
      );
      expect(rotations.filter(({ rotated }) => !rotated)).toHaveLength(1);
      const record = (await port.find(KEY))!;
      expect(record.previous).toMatch(/^s\d+$/);
      expect(record.previous).not.toBe(record.current);
    });

    test('each namespace, plugin, event and instance has its own secret', async () => {
      const { port, clock } = await openFresh(open);
      const keys = [
        KEY,
        { ...KEY, namespaceId: 'other' },
        { ...KEY, pluginId: 'x' },
        { ...KEY, event: 'x' },
        { ...KEY, instanceId: 'x' },
      ];
      await times(keys.length, (i) => port.rotate(keys[i]!, next(`s${i}`, clock.now())));
      const found = await times(keys.length, (i) => port.find(keys[i]!));
      expect(found.map((record) => record?.current)).toEqual(['s0', 's1', 's2', 's3', 's4']);
      expect((await port.list('acme')).map(({ current }) => current).sort()).toEqual([
        's0',
        's2',
        's3',
        's4',
      ]);
    });

    test('revoking a secret deletes the previous one too, and the next secret is a first one', async () => {
      const { port, clock } = await openFresh(open);
      await port.rotate(KEY, next('one', clock.now()));
      await port.rotate(KEY, next('two', clock.now()));
      expect((await times(5, () => port.revoke(KEY))).filter(Boolean)).toHaveLength(1);
      expect(await port.find(KEY)).toBeUndefined();
      expect(await port.list('acme')).toEqual([]);
      expect(await port.rotate(KEY, next('three', clock.now()))).toEqual({
        rotated: false,
        namespaceInUrl: false,
      });
    });

    test('a key may be passed as an object with further fields', async () => {
      const { port, clock } = await openFresh(open);
      const wide = { ...KEY, caller: 'ci', now: -1 };
      await port.rotate(wide, next('one', clock.now()));
      expect(await port.find(wide)).toMatchObject({ current: 'one', rotatedAt: clock.now() });
    });
  });
}
