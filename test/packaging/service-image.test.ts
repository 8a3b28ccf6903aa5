import { execFileSync } from 'node:child_process';
import { chmodSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { engineMissing, type TestEngine } from '../plugins/engine.ts';
import { useEngine } from '../support/containers.ts';
import { tempDir } from '../support/daemon.ts';
import { makeImageFolders } from '../support/image-folders.ts';
import { freePort } from '../support/ports.ts';

const NODE = '/opt/svc/node_modules/node/bin';

/** Instructions of a stage of the Dockerfile that configure its image; those of the stages before it included. */
function configOf(target: string): string[] {
  const text = readFileSync(join(packageRoot, 'Dockerfile'), 'utf8').replace(/\\\n/g, ' ');
  const stages = new Map<string, { from: string; lines: string[] }>();
  let lines: string[] = [];
  for (const line of text.split('\n')) {
    const [, from, name] = /^FROM (\S+) AS (\S+)$/.exec(line) ?? [];
    if (from && name) {
      lines = [];
      stages.set(name, { from, lines });
    } else if (/^(?:ENV|USER|WORKDIR|VOLUME|STOPSIGNAL|ENTRYPOINT|CMD) /.test(line)) lines.push(line);
  }
  const instructionsOf = (name: string): string[] => {
    const stage = stages.get(name);
    return stage ? [...instructionsOf(stage.from), ...stage.lines] : [];
  };
  return instructionsOf(target).flatMap((line) =>
    line.startsWith('ENV ')
      ? line
          .slice(4)
          .split(' ')
          .map((pair) => `ENV ${pair}`)
      : [line],
  );
}

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

describe.skipIf(engineMissing !== undefined)(
  'the target "service" of the Dockerfile',
  { timeout: 120_000 },
  () => {
    useEngine('podman', (started) => {
      engine = started;
    });

    test('runs the service of its argument as process 1, and exits with 0 when it is stopped', async () => {
      await importImage('service', 'svc-service');
      const port = await freePort();
      const programs = ['bin', 'sbin', 'lib', 'lib64', 'share'].flatMap((name) => [
        '--volume',
        `/usr/${name}:/usr/${name}:ro`,
      ]);
      const id = engine
        .cli(
          ...['run', '--detach', '--network', 'host', '--read-only', '--cap-drop', 'ALL'],
          ...['--security-opt', 'no-new-privileges', ...programs, '--volume', `${packageRoot}:/opt/svc:ro`],
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
  },
);
