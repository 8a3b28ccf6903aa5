import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createBwrapProbe } from '../../src/plugins/sandbox/bwrap.ts';
import { chooseSandbox } from '../../src/plugins/sandbox/launch.ts';
import { tempDir } from '../support/daemon.ts';
import { fakeBwrap, HANGS } from '../support/fake-bwrap.ts';

test('a probe that times out is tried again, never with a weaker variant, and never kept', async () => {
  const { path, calls } = await fakeBwrap(HANGS);
  const probe = createBwrapProbe({ path, timeoutMs: 2000 });
  const timedOut = { works: false, undecided: true, reason: 'bubblewrap did not start within 2000 ms' };
  expect(await probe()).toEqual(timedOut);
  const tried = await calls();
  expect(tried).toHaveLength(2);
  expect(new Set(tried).size).toBe(1);
  expect(tried[0]).toContain('--disable-userns');

  for (const preference of ['auto', 'bwrap'] as const)
    await expect(chooseSandbox(preference, probe)).rejects.toMatchObject({
      code: 'SANDBOX_ERROR',
      message: expect.stringContaining('The next call retries'),
    });
  expect(await calls()).toHaveLength(6);
});

test('after a time-out the strongest variant still comes into force', async () => {
  const folder = await tempDir();
  const mark = join(folder, 'hung');
  const { path, calls } = await fakeBwrap(`[ -e '${mark}' ] && exit 0\ntouch '${mark}'\n${HANGS}`);
  const probe = createBwrapProbe({ path, timeoutMs: 5000 });
  expect(await chooseSandbox('auto', probe)).toMatchObject({
    mode: 'bwrap',
    bwrap: { variant: { user: expect.arrayContaining(['--disable-userns']) } },
  });
  expect(await chooseSandbox('bwrap', probe)).toMatchObject({ mode: 'bwrap' });
  expect(await calls()).toHaveLength(2);
});

test('a refusal is a verdict: "auto" takes the permission model, "bwrap" nothing, and it is kept', async () => {
  const { path, calls } = await fakeBwrap("echo 'bwrap: no permission' >&2; exit 1");
  const probe = createBwrapProbe({ path });
  expect(await chooseSandbox('auto', probe)).toEqual({
    mode: 'permission',
    reason: expect.stringContaining('no permission'),
  });
  const { length } = await calls();
  await expect(chooseSandbox('bwrap', probe)).rejects.toMatchObject({ code: 'SANDBOX_ERROR' });
  expect(await calls()).toHaveLength(length);
});
