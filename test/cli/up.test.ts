import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { isAlive } from '../support/is-alive.ts';
import { PROGRAM, testPlatform, withStandIns } from './platform.ts';

const SLOW = { timeout: 60_000 };
const POLL = { timeout: 20_000, interval: 100 };

test('a service that fails to start reports its reason', SLOW, async () => {
  const { svc, dataDir } = await testPlatform(...withStandIns({ real: ['marketplace'] }));
  await mkdir(join(dataDir, 'marketplace.lock.json'), { recursive: true });
  const { code, json } = await svc('up', '-d');
  expect([code, json.ok, json.error.message]).toEqual([
    1,
    false,
    expect.stringMatching(/^\w+ could not start: EISDIR: .*marketplace\.lock\.json/),
  ]);
});

test(
  'a closed reader stops the foreground platform like a stop: drained, with no process left',
  SLOW,
  async () => {
    const { folder, dataDir } = await testPlatform(...withStandIns());
    const runFile = join(dataDir, 'run', 'supervisor.json');
    const piped = spawn('sh', ['-c', `'${join(packageRoot, 'bin', 'svc')}' up | head -1`], { cwd: folder });
    let [stdout, stderr] = ['', ''];
    piped.stdout.on('data', (text) => (stdout += text));
    piped.stderr.on('data', (text) => (stderr += text));
    const ended = new Promise((resolve) => piped.once('close', resolve));
    await expect.poll(() => existsSync(runFile), POLL).toBe(true);
    await ended;
    expect(JSON.parse(stdout)).toHaveProperty('serviceId');
    expect(existsSync(runFile)).toBe(false);
    const pids = [...stderr.matchAll(/pid (\d+)/g)].map(([, pid]) => Number(pid));
    expect(pids.filter(isAlive)).toEqual([]);
    expect([...stderr.matchAll(/^■ (\w+) stopped$/gm)].map(([, name]) => name)).toContain('gateway');
  },
);

test.skipIf(!existsSync('/dev/full'))(
  'a full disk stops only the log output of a foreground platform, with one warning',
  SLOW,
  async () => {
    const { svc, folder, env } = await testPlatform(...withStandIns());
    const program = PROGRAM.map((word) => `'${word}'`).join(' ');
    const shell = (line: string) =>
      promisify(execFile)('sh', ['-c', `exec ${program} ${line}`], { cwd: folder, env }).then(
        ({ stderr }) => ({ code: 0, stderr }),
        ({ code, stderr }: { code: number; stderr: string }) => ({ code, stderr }),
      );
    const foreground = shell('up > /dev/full');
    const states = async () =>
      (await svc('status')).json.result.services.map(({ state }: { state: string }) => state);
    await expect.poll(states, POLL).toEqual(Array(5).fill('ready'));
    await svc('down');
    expect(await foreground).toEqual({ code: 0, stderr: expect.stringContaining('■ gateway stopped') });
    expect((await foreground).stderr.match(/ENOSPC/g)).toHaveLength(1);

    expect(await shell('up -d > /dev/null 2> /dev/full')).toEqual({ code: 0, stderr: '' });
    expect(await states()).toEqual(Array(5).fill('ready'));
    expect(await shell('status --json > /dev/full')).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^error Cannot write the output: ENOSPC.*\n$/),
    });
  },
);

test('a stopped gateway on a dynamic port is reported as such, not as port 0', async () => {
  const { svc } = await testPlatform();
  const { code, json } = await svc('webhooks', 'list');
  expect([code, json.error.message, json.error.details.hint]).toEqual([
    5,
    'svc is not running here.',
    expect.stringContaining('svc up -d'),
  ]);
});

test('logs -n 0 prints nothing, whether the platform runs or not', SLOW, async () => {
  const { svc, start } = await testPlatform(...withStandIns());
  const silent = { code: 0, stdout: '', stderr: '' };
  expect(await start('logs', '-n', '0').done).toMatchObject(silent);
  await svc('up', '-d');
  expect(await start('logs', '-n', '0').done).toMatchObject(silent);
});
