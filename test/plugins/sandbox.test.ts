import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { Permissions } from '../../src/contracts/index.ts';
import { silentLogger } from '../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../src/kit/time/clock.ts';
import { sandboxInForce, WorkerBackend } from '../../src/plugins/index.ts';
import { probeBwrap } from '../../src/plugins/sandbox/bwrap.ts';
import { grantedNames, scrubEnvironment } from '../../src/plugins/sandbox/environment.ts';
import { FIXTURES } from './fixtures.ts';

// A machine without bubblewrap and setpriv: whatever is tried is tried once per process, so this file has its own.
beforeAll(() => {
  process.env.PATH = '/nowhere';
});

test('without bubblewrap the permission model is in force, and the reason is reported', async () => {
  expect(await probeBwrap()).toEqual({
    works: false,
    undecided: false,
    reason: 'bubblewrap (bwrap) is not installed',
  });
  const networkGuarded = process.allowedNodeEnvironmentFlags.has('--allow-net');
  expect(await sandboxInForce()).toEqual({
    mode: 'permission',
    networkGuarded,
    reason: 'bubblewrap (bwrap) is not installed',
  });
  expect(await sandboxInForce('permission')).toMatchObject({ mode: 'permission', networkGuarded });
});

const backendWith = (sandbox: 'auto' | 'bwrap') =>
  new WorkerBackend({
    config: { maxProcesses: 1, memoryMb: 256, idleMs: 1000, isolation: 'plugin', sandbox },
    services: {},
    logger: silentLogger,
    clock: systemClock,
    dataDir: '/nowhere/.svc',
  });

const request = {
  executionId: 'e',
  plugin: { id: 'attacker', version: '1.0.0', root: join(FIXTURES, 'attacker') },
  handler: 'attacks.js#ok',
  host: 'cli' as const,
  hostContext: {},
  input: 1,
  params: {},
  user: null,
  tenantId: 'default',
  requestId: 'r',
  traceId: 't',
  config: {},
  permissions: Permissions.parse({}),
  schemas: {},
  timeoutMs: 10_000,
};

test('"bwrap" that does not work is SANDBOX_ERROR with the remedy; "auto" runs without it', async () => {
  await expect(sandboxInForce('bwrap')).rejects.toMatchObject({ code: 'SANDBOX_ERROR' });
  const strict = backendWith('bwrap');
  await expect(strict.run(request)).rejects.toMatchObject({
    code: 'SANDBOX_ERROR',
    message: expect.stringContaining('Install bubblewrap'),
  });
  await strict.close();
  const lenient = backendWith('auto');
  expect(await lenient.run(request)).toMatchObject({ exitCode: 0, result: { ok: true } });
  await lenient.close();
});

test('the environment of a plugin holds what its manifest lists and what Node needs', () => {
  const environment = { PATH: '/bin', HOME: '/root', TZ: 'UTC', A: 'a', SVC_TOKEN: 's', LD_PRELOAD: 'x' };
  const listed = Permissions.parse({ env: ['A', 'B', 'SVC_TOKEN', 'LD_PRELOAD', 'NODE_OPTIONS'] });
  expect(scrubEnvironment(listed, environment)).toEqual({ TZ: 'UTC', A: 'a' });
  expect(grantedNames(listed)).toEqual(['A', 'B']);
  const spawning = Permissions.parse({ platform: { childProcess: true } });
  expect(scrubEnvironment(spawning, environment)).toEqual({ TZ: 'UTC', PATH: '/bin' });
});
