import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, cp, mkdir, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { tempDir } from '../support/daemon.ts';

/** The real launcher and its scripts around a program of one line, an npm and a build that only note their calls. */
const FAKE_NPM = `#!/bin/sh
echo "npm $*" >> calls.log
echo "npm prints this on stdout"
if [ -n "$FAIL_NPM" ]; then exit 7; fi
sleep 0.3
mkdir -p node_modules/.bin
cp package-lock.json node_modules/.package-lock.json
printf '#!/bin/sh\\nexec "%s" "$@"\\n' "$REAL_NODE" > node_modules/.bin/node
chmod +x node_modules/.bin/node
exec "$REAL_NODE" scripts/build.js
`;
const FAKE_BUILD = `
import { appendFileSync, mkdirSync, copyFileSync } from 'node:fs';
import { takeStamp, writeStamp } from './freshness.js';
appendFileSync('calls.log', 'build\\n');
const stamp = await takeStamp(process.cwd());
mkdirSync('dist', { recursive: true });
copyFileSync('src/cli/main.ts', 'dist/cli.js');
writeStamp('dist', stamp);
`;
const PROGRAM = `
const [mode] = process.argv.slice(2);
if (mode === 'wait') { process.stdout.write('waiting'); setTimeout(() => {}, 60000); }
else { console.log(JSON.stringify({ args: process.argv.slice(2) })); process.exitCode = Number(mode ?? 0); }
`;

interface Checkout {
  folder: string;
  calls(): Promise<string[]>;
  start(args?: string[], env?: Record<string, string>): Run;
}
interface Run {
  child: ChildProcess;
  done: Promise<{ code: number | null; signal: string | null; stdout: string; stderr: string }>;
}

async function checkout({ engines = '>=18' } = {}): Promise<Checkout> {
  const folder = await tempDir();
  await mkdir(join(folder, 'src', 'cli'), { recursive: true });
  await mkdir(join(folder, 'fake'));
  await cp(join(packageRoot, 'bin'), join(folder, 'bin'), { recursive: true });
  await cp(join(packageRoot, 'scripts'), join(folder, 'scripts'), { recursive: true });
  await writeFile(join(folder, 'scripts', 'build.js'), FAKE_BUILD);
  await writeFile(join(folder, 'src', 'cli', 'main.ts'), PROGRAM);
  await writeFile(join(folder, 'fake', 'npm'), FAKE_NPM);
  await chmod(join(folder, 'fake', 'npm'), 0o755);
  const manifest = { name: 'x', type: 'module', engines: { node: engines } };
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest));
  await writeFile(join(folder, 'package-lock.json'), JSON.stringify({ packages: { '': {} } }));
  return {
    folder,
    calls: async () =>
      (await readFile(join(folder, 'calls.log'), 'utf8').catch(() => '')).split('\n').filter(Boolean),
    start(args = [], env = {}) {
      const child = spawn(process.execPath, [join(folder, 'bin', 'svc'), ...args], {
        cwd: folder,
        env: {
          ...process.env,
          PATH: `${join(folder, 'fake')}:${process.env.PATH}`,
          REAL_NODE: process.execPath,
          ...env,
        },
      });
      let [stdout, stderr] = ['', ''];
      child.stdout.on('data', (text) => (stdout += text));
      child.stderr.on('data', (text) => (stderr += text));
      const done = new Promise<Awaited<Run['done']>>((resolve) =>
        child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr })),
      );
      return { child, done };
    },
  };
}

test('the first start installs and builds with progress on stderr; the second does neither', async () => {
  const { start, calls } = await checkout();
  const first = await start(['0', 'a b']).done;
  expect(first).toMatchObject({ code: 0, stdout: '{"args":["0","a b"]}\n' });
  expect(first.stderr).toContain('installing dependencies');
  expect(await calls()).toEqual(['npm ci --no-audit --no-fund --loglevel=error', 'build']);

  const second = await start(['3']).done;
  expect(second).toMatchObject({ code: 3, stderr: '' });
  expect(await calls()).toHaveLength(2);
});

test('two concurrent first starts install once, and both run', async () => {
  const { start, calls } = await checkout();
  const both = await Promise.all([start(['0']).done, start(['0']).done]);
  expect(both.map(({ code, stdout }) => [code, stdout])).toEqual([
    [0, '{"args":["0"]}\n'],
    [0, '{"args":["0"]}\n'],
  ]);
  expect(await calls()).toEqual(['npm ci --no-audit --no-fund --loglevel=error', 'build']);
});

test('a killed start leaves no lock that blocks the next', async () => {
  const { folder, start, calls } = await checkout();
  const first = start(['0']);
  await expect.poll(calls).toEqual(['npm ci --no-audit --no-fund --loglevel=error']);
  first.child.kill('SIGKILL');
  await first.done;
  expect(await readFile(join(folder, 'dist.lock', 'owner.json'), 'utf8')).toContain(String(first.child.pid));
  // The killed one's npm may still be at work in this folder; here only the lock is looked at.
  const [a, b] = await Promise.all([start(['0']).done, start(['0']).done]);
  expect([a.code, b.code]).toEqual([0, 0]);
});

test('a changed source file is rebuilt; one with only a new time stamp is not', async () => {
  const { folder, start, calls } = await checkout();
  const source = join(folder, 'src', 'cli', 'main.ts');
  await start().done;
  await utimes(source, new Date(), new Date(Date.now() + 5000));
  await start().done;
  expect(await calls()).toEqual(['npm ci --no-audit --no-fund --loglevel=error', 'build']);

  await writeFile(source, `console.log('changed');`);
  expect((await start().done).stdout).toBe('changed\n');
  expect(await calls()).toEqual(['npm ci --no-audit --no-fund --loglevel=error', 'build', 'build']);
});

test('dependencies are reinstalled after the lockfile changed, but not after only its time stamp changed', async () => {
  const { folder, start, calls } = await checkout();
  const lockfile = join(folder, 'package-lock.json');
  await start().done;
  await utimes(lockfile, new Date(), new Date(Date.now() + 5000));
  await start().done;
  expect(await calls()).toHaveLength(2);

  await writeFile(lockfile, JSON.stringify({ packages: { '': {}, 'node_modules/a': { version: '1.0.0' } } }));
  await utimes(lockfile, new Date(), new Date(Date.now() + 5000));
  await start().done;
  expect((await calls()).filter((call) => call.startsWith('npm'))).toHaveLength(2);
});

test('a failed install starts nothing and exits with 1', async () => {
  const { start } = await checkout();
  const { code, stdout, stderr } = await start(['0'], { FAIL_NPM: '1' }).done;
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toContain('npm ci failed with exit code 7');
});

test('under an outdated Node, the pinned Node runs the program and passes exit codes and signals through', async () => {
  const { start } = await checkout({ engines: '>=99.1' });
  expect(await start(['5']).done).toMatchObject({ code: 5, stdout: '{"args":["5"]}\n' });

  const waiting = start(['wait']);
  await new Promise((resolve) => waiting.child.stdout!.once('data', resolve));
  waiting.child.kill('SIGTERM');
  expect(await waiting.done).toMatchObject({ code: 143 });
});

test('an installed package names the Node version that it needs', async () => {
  const { folder, start } = await checkout({ engines: '>=99.1' });
  await mkdir(join(folder, 'dist'));
  await writeFile(join(folder, 'dist', 'cli.js'), PROGRAM);
  for (const part of ['src', 'scripts']) await rm(join(folder, part), { recursive: true });
  const { code, stdout, stderr } = await start().done;
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toContain(`svc needs Node 99.1 or newer; this is ${process.versions.node}`);
  expect(stderr).toContain('npm install --save-dev node@^99.1');
});

test.each([
  ['the Node that made the plugin', '.cache/svc-node'],
  ['the `node` package beside it', 'node/bin/node'],
])(
  'a package in the node_modules of a plugin runs on %s when its own Node is outdated',
  async (_what, place) => {
    const modules = join(await tempDir(), 'node_modules');
    const folder = join(modules, 'svc-platform');
    for (const part of ['bin', 'scripts'])
      await cp(join(packageRoot, part), join(folder, part), { recursive: true });
    await mkdir(join(folder, 'dist'));
    await writeFile(join(folder, 'dist', 'cli.js'), PROGRAM);
    await writeFile(
      join(folder, 'package.json'),
      JSON.stringify({ name: 'x', type: 'module', engines: { node: '>=99.1' } }),
    );
    const file = join(modules, place);
    await mkdir(dirname(file), { recursive: true });
    if (place.endsWith('bin/node')) await symlink(process.execPath, file);
    else await writeFile(file, `${process.execPath}\n`);
    const child = spawn(process.execPath, [join(folder, 'bin', 'svc'), '5', 'word']);
    let stdout = '';
    child.stdout.on('data', (text) => (stdout += text));
    const code = await new Promise((resolve) => child.once('close', resolve));
    expect([code, stdout]).toEqual([5, '{"args":["5","word"]}\n']);
  },
);

test('a copy of the sources is built at its first start', { timeout: 120_000 }, async () => {
  const folder = await tempDir();
  for (const part of ['bin', 'scripts', 'src', 'package.json', 'package-lock.json', 'tsconfig.json'])
    await cp(join(packageRoot, part), join(folder, part), { recursive: true });
  await symlink(join(packageRoot, 'node_modules'), join(folder, 'node_modules'));
  const child = spawn(join(folder, 'bin', 'svc'), ['--version'], { cwd: '/' });
  let stdout = '';
  child.stdout.on('data', (text) => (stdout += text));
  const code = await new Promise((resolve) => child.once('close', resolve));
  const { version } = JSON.parse(await readFile(join(packageRoot, 'package.json'), 'utf8'));
  expect([code, stdout]).toEqual([0, `${version}\n`]);
  for (const file of [
    'daemon.js',
    'runner.js',
    'sdk.js',
    'contracts.js',
    'types/sdk/index.d.ts',
    'THIRD-PARTY-LICENSES.txt',
    'studio/third-party-licenses.md',
  ])
    expect((await readFile(join(folder, 'dist', file), 'utf8')).length).toBeGreaterThan(100);
});
