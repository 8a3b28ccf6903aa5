import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PlatformConfig, SERVICE_NAMES } from '../../src/contracts/index.ts';
import { drainDelayMsOf } from '../../src/kit/config/drain-delay.ts';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { STOP_DEADLINES } from '../../src/kit/time/stop-deadlines.ts';
import { tempDir } from '../support/daemon.ts';

const ANALYZE = '/usr/bin/systemd-analyze';
const TEMPLATE = join(packageRoot, 'examples/systemd/svc@.service');

async function settings(): Promise<Map<string, string>> {
  const lines = (await readFile(TEMPLATE, 'utf8')).split('\n').filter((line) => /^[A-Z]\w+=/.test(line));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]));
}

test.skipIf(!existsSync(ANALYZE)).each(SERVICE_NAMES)('systemd accepts the unit svc@%s', async (name) => {
  const folder = await tempDir();
  await copyFile(TEMPLATE, join(folder, 'svc@.service'));
  const unit = join(folder, `svc@${name}.service`);
  // Unknown settings are only warnings on stderr.
  const { status, stderr } = spawnSync(ANALYZE, ['verify', '--man=no', unit], {
    env: { ...process.env, SYSTEMD_UNIT_PATH: `${folder}:` },
    encoding: 'utf8',
  });
  expect([status, stderr]).toEqual([0, '']);
});

test('the unit sets nothing that keeps bubblewrap or V8 from working', async () => {
  const found = await settings();
  for (const name of [
    ...['RestrictNamespaces', 'ProtectKernelTunables', 'ProtectKernelLogs', 'ProtectProc', 'ProcSubset'],
    ...['MemoryDenyWriteExecute', 'PrivateUsers', 'RootDirectory'],
  ])
    expect(found.has(name), name).toBe(false);
  expect(found.get('SystemCallFilter')).not.toContain('@mount');
});

test('the unit waits longer than the longest stop of a service', async () => {
  const config = PlatformConfig.parse({ cluster: { enabled: true } });
  const stopsMs = SERVICE_NAMES.map(
    (name) => drainDelayMsOf(config, name) + config[name].drainMs + STOP_DEADLINES.processEndMs,
  );
  expect(Number((await settings()).get('TimeoutStopSec')) * 1000).toBeGreaterThan(Math.max(...stopsMs));
});
