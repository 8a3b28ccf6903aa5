import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { WorkingBwrap } from '../../../src/plugins/sandbox/bwrap.ts';
import { createUserSwitchCheck } from '../../../src/plugins/sandbox/script-args.ts';
import { tempDir } from '../../support/daemon.ts';
import { fakeBwrap, HANGS } from '../../support/fake-bwrap.ts';

const BWRAP: WorkingBwrap = { works: true, variant: { user: [], proc: ['--proc', '/proc'] } };

test('a busy machine is no refusal to switch users, and the next start tries again', async () => {
  const mark = join(await tempDir(), 'hung');
  const { path, calls } = await fakeBwrap(
    `[ "$(cat "${mark}" 2> /dev/null)" = xx ] && exit 0\nprintf x >> "${mark}"\n${HANGS}`,
  );
  const faultOf = createUserSwitchCheck({ path, timeoutMs: 2000 });
  await expect(faultOf(BWRAP)).rejects.toMatchObject({
    code: 'SANDBOX_ERROR',
    message:
      'Scripts (run:) cannot be started now, because this machine is too busy: bubblewrap did not start within 2000 ms. Try again.',
  });
  expect(await calls()).toHaveLength(2);
  expect(await faultOf(BWRAP)).toBeUndefined();
  expect(await calls()).toHaveLength(3);
});

test('first starts at the same time share one switch of users, and a success is kept', async () => {
  const { path, calls } = await fakeBwrap('exit 0');
  const faultOf = createUserSwitchCheck({ path });
  const faults = await Promise.all([faultOf(BWRAP), faultOf(BWRAP), faultOf(BWRAP)]);
  expect(faults).toEqual([undefined, undefined, undefined]);
  expect(await faultOf(BWRAP)).toBeUndefined();
  expect(await calls()).toHaveLength(1);
});

test('a refusal to switch users is not kept', async () => {
  const mark = join(await tempDir(), 'refused');
  const { path, calls } = await fakeBwrap(
    `[ "$(cat "${mark}" 2> /dev/null)" = xx ] && exit 0\nprintf x >> "${mark}"\necho 'setpriv: no permission' >&2; exit 1`,
  );
  const faultOf = createUserSwitchCheck({ path });
  expect(await faultOf(BWRAP)).toBe('setpriv: no permission');
  expect(await faultOf(BWRAP)).toBeUndefined();
  expect(await calls()).toHaveLength(3);
});
