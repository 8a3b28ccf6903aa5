import { expect, test } from 'vitest';
import { weakestSandbox } from '../../src/supervisor/sandbox-status.ts';

const REASON = 'execution.worker.sandbox is "permission"';

test('the weakest sandbox of the running services is reported; a process report takes precedence over the config', async () => {
  const bwrap = { mode: 'bwrap', networkGuarded: true } as const;
  const permission = { mode: 'permission', networkGuarded: true, reason: REASON } as const;
  const unavailable = { mode: 'unavailable', networkGuarded: false, reason: 'gone' } as const;
  expect(await weakestSandbox([{ used: null, preference: null }])).toBe(null);
  expect(await weakestSandbox([{ used: bwrap, preference: 'permission' }])).toEqual(bwrap);
  expect(
    await weakestSandbox([
      { used: bwrap, preference: 'auto' },
      { used: null, preference: 'permission' },
    ]),
  ).toMatchObject({ mode: 'permission', reason: REASON });
  expect(
    await weakestSandbox([
      { used: permission, preference: 'auto' },
      { used: unavailable, preference: 'bwrap' },
      { used: bwrap, preference: 'auto' },
    ]),
  ).toEqual(unavailable);
});
