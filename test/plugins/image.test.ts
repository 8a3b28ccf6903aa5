import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { useEngine } from '../support/containers.ts';
import { tempDir } from '../support/daemon.ts';
import { engineMissing, type TestEngine } from './engine.ts';

const BASE = 'docker.io/library/node:26-slim';

let engine: TestEngine;

/** The engine's command line as the script finds it: on the test's own store, and never asking a registry. */
async function engineProgram(): Promise<string> {
  const file = join(await tempDir(), 'podman');
  const podman = engine.command.map((word) => `'${word}'`).join(' ');
  const script = `#!/bin/sh
if [ "$1" = build ]; then shift; exec ${podman} build --pull=never --isolation chroot "$@"; fi
exec ${podman} "$@"
`;
  writeFileSync(file, script, { mode: 0o755 });
  return file;
}

function imageRunner(program: string, tag: string) {
  const script = join(packageRoot, 'scripts/image-runner.js');
  return spawnSync(process.execPath, [script, '--engine', program, '--tag', tag], {
    env: engine.env,
    encoding: 'utf8',
  });
}

/** What of `node:26-slim` the Dockerfile touches: a shell, `rm`, Node where it lies there, npm and the entrypoint. */
async function importBase(): Promise<void> {
  const root = join(await tempDir(), 'base');
  const add = (program: string, at: string): void => {
    const libraries = execFileSync('ldd', [program], { encoding: 'utf8' });
    const wanted = [...libraries.matchAll(/(?:=> )?(\/\S+) \(0x/g)].map(
      ([, path]) => [path!, path!] as const,
    );
    for (const [from, to] of [[program, at] as const, ...wanted]) {
      mkdirSync(dirname(join(root, to)), { recursive: true });
      if (!existsSync(join(root, to))) cpSync(realpathSync(from), join(root, to));
    }
  };
  add('/bin/sh', '/bin/sh');
  add('/bin/rm', '/bin/rm');
  add(realpathSync(process.execPath), '/usr/local/bin/node');
  mkdirSync(join(root, 'tmp'), { mode: 0o777 });
  mkdirSync(join(root, 'usr/local/lib/node_modules/npm'), { recursive: true });
  writeFileSync(join(root, 'usr/local/bin/docker-entrypoint.sh'), '#!/bin/sh\n', { mode: 0o755 });
  const archive = `${root}.tar`;
  execFileSync('tar', ['-C', root, '--owner=0', '--group=0', '-cf', archive, '.']);
  engine.cli('import', archive, BASE);
}

describe.skipIf(engineMissing !== undefined)('npm run image:runner', { timeout: 120_000 }, () => {
  useEngine('podman', (started) => {
    engine = started;
  });

  test('without a registry the image is made from the Node of this machine', async () => {
    const { status, stdout, stderr } = imageRunner(await engineProgram(), 'from-this-node');
    expect([status, stdout]).toEqual([0, 'from-this-node is ready\n']);
    expect(stderr).toContain("using this machine's Node");
    expect(
      engine.cli('run', '--rm', '--network', 'none', 'from-this-node', '/usr/local/bin/node', '--version'),
    ).toBe(`${process.version}\n`);
  });

  test('the Dockerfile leaves Node, nobody as the user, and neither npm nor an entrypoint of its own', async () => {
    await importBase();
    const { status, stdout, stderr } = imageRunner(await engineProgram(), 'from-dockerfile');
    expect([status, stdout, stderr.includes('using this machine')]).toEqual([
      0,
      'from-dockerfile is ready\n',
      false,
    ]);
    const [image] = JSON.parse(engine.cli('image', 'inspect', 'from-dockerfile')) as [{ Config: object }];
    expect(image.Config).toMatchObject({
      User: '65534:65534',
      Entrypoint: ['/usr/local/bin/node'],
      WorkingDir: '/tmp',
    });
    const look = `console.log(process.getuid(), ['/usr/local/lib/node_modules', '/usr/local/bin/docker-entrypoint.sh'].map((path) => require('fs').existsSync(path)))`;
    expect(engine.cli('run', '--rm', '--network', 'none', 'from-dockerfile', '-e', look)).toBe(
      '65534 [ false, false ]\n',
    );
  });
});
