import { execFileSync } from 'node:child_process';
import { chmodSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { engineMissing, type TestEngine } from '../plugins/engine.ts';
import { useEngine } from '../support/containers.ts';
import { tempDir } from '../support/daemon.ts';
import { configOf } from '../support/dockerfile.ts';
import { makeImageFolders } from '../support/image-folders.ts';
import { freePort } from '../support/ports.ts';

const NODE = '/opt/svc/node_modules/node/bin';

let engine: TestEngine;

/** Makes a stand-in of the image, whose configuration is the Dockerfile's and whose programs are those of this machine. */
async function importImage(target: string, tag: string): Promise<void> {
  const root = join(await tempDir(), 'rootfs');
  makeImageFolders(root);
  for (const folder of ['tmp', 'var/lib/svc']) chmodSync(join(root, folder), 0o1777);
  const archive = `${root}.tar`;
  execFileSync('tar', ['-C', root, '--owner=0', '--group=0', '-cf', archive, '.']);
  const changes = [`ENV PATH=/opt/svc/bin:${NODE}:/usr/sbin:/usr/bin`, ...configOf(target)];
  engine.cli('import', ...changes.flatMap((change) => ['--change', change]), archive, tag);
}

test('the default target of the Dockerfile is the whole platform', () => {
  const [last] = [...readFileSync(join(packageRoot, 'Dockerfile'), 'utf8').matchAll(/^FROM .* AS (\S+)$/gm)]
    .map(([, name]) => name)
    .toReversed();
  expect(last).toBe('platform');
  expect(configOf('platform').slice(-2)).toEqual(['ENTRYPOINT ["svc"]', 'CMD ["up"]']);
});

/** Mounts this machine's programs and this checkout into the stand-in of the image. */
const mounts = (): string[] => [
  ...['bin', 'sbin', 'lib', 'lib64', 'share'].flatMap((name) => ['--volume', `/usr/${name}:/usr/${name}:ro`]),
  ...['--volume', `${packageRoot}:/opt/svc:ro`],
];

describe.skipIf(engineMissing !== undefined)('the targets of the Dockerfile', { timeout: 120_000 }, () => {
  useEngine('podman', (started) => {
    engine = started;
  });

  test('"platform" starts all services, and serves the studio', async () => {
    await importImage('platform', 'svc-platform');
    const port = await freePort();
    const others = ['rest', 'workflow', 'marketplace', 'state'].flatMap((name) => ['--port', `${name}=0`]);
    const id = engine
      .cli(
        ...['run', '--detach', '--network', 'host', '--cap-drop', 'ALL', '--init', ...mounts()],
        ...[
          '--env',
          `GATEWAY_JWT_SECRET=${'j'.repeat(40)}`,
          '--env',
          `GATEWAY_INTERNAL_SECRET=${'i'.repeat(40)}`,
        ],
        ...['svc-platform', 'up', '--port', `gateway=${port}`, ...others],
      )
      .trim();
    const page = () => fetch(`http://127.0.0.1:${port}/studio/`).then((response) => response.text());
    await expect
      .poll(() => page().catch(() => engine.cli('logs', id)), { timeout: 60_000, interval: 200 })
      .toContain('<title>svc studio</title>');
    const files = [...(await page()).matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path!);
    expect(files.length).toBeGreaterThan(2);
    for (const file of files)
      expect([file, (await fetch(`http://127.0.0.1:${port}${file}`)).status]).toEqual([file, 200]);
    // `svc up` exits like any command that SIGTERM ends.
    engine.cli('stop', '--time', '30', id);
    expect(engine.cli('inspect', '--format', '{{.State.ExitCode}}', id).trim()).toBe('143');
  });

  test('"service" runs the service of its argument as process 1, and exits with 0 when it is stopped', async () => {
    await importImage('service', 'svc-service');
    const port = await freePort();
    const id = engine
      .cli(
        ...['run', '--detach', '--network', 'host', '--read-only', '--cap-drop', 'ALL'],
        ...['--security-opt', 'no-new-privileges', ...mounts()],
        ...['--env', `SVC_STATE_PORT=${port}`, '--env', `GATEWAY_INTERNAL_SECRET=${'i'.repeat(40)}`],
        ...['svc-service', 'state'],
      )
      .trim();
    const health = () => fetch(`http://127.0.0.1:${port}/health`).then(({ status }) => status);
    await expect
      .poll(() => health().catch(() => engine.cli('logs', id)), { timeout: 60_000, interval: 200 })
      .toBe(200);
    const pid = engine.cli('inspect', '--format', '{{.State.Pid}}', id).trim();
    expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).toMatch(/^svc state/);
    expect(readFileSync(`/proc/${pid}/status`, 'utf8')).toMatch(/^NSpid:.*\t1$/m);
    expect(readFileSync(`/proc/${pid}/status`, 'utf8')).toMatch(/^Uid:\t1000\t/m);
    engine.cli('stop', '--time', '20', id);
    expect(engine.cli('inspect', '--format', '{{.State.ExitCode}}', id).trim()).toBe('0');
    const records = engine.cli('logs', id).trim().split('\n');
    expect(JSON.parse(records.at(-1)!).message).toBe('state stopped');
  });
});
