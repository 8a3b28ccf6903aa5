import { execFile } from 'node:child_process';
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { createPlatform, INSTALLED } from '../support/platform.ts';
import { userEnvironment } from '../support/user-environment.ts';

const run = promisify(execFile);
const PLUGIN = fileURLToPath(new URL('../fixtures/projects/webhooks/plugins/orders', import.meta.url));
const NOTE = { id: 'note', jobs: { main: { steps: [{ uses: 'set', with: { done: true } }] } } };
const HOUR_MS = 3600_000;
const MAX_COLUMNS = 80;

test('runs are started with labels, found by label and text, and counted per hour like deliveries', async () => {
  const platform = await createPlatform({ plugins: ['./plugins/*'] });
  onTestFinished(() => platform.dispose());
  await cp(PLUGIN, join(platform.folder, 'plugins/orders'), { recursive: true });
  await mkdir(join(platform.folder, 'workflows'));
  await writeFile(join(platform.folder, 'workflows/note.yaml'), JSON.stringify(NOTE));
  await platform.up();
  const result = async (...args: string[]) => (await platform.svc(...args)).envelope.result;

  const labels = ['--label', 'customer=acme', '--label', 'env=a:b'];
  const started = await result('workflows', 'run', 'note', '--input', '{"order":"A-17"}', ...labels);
  expect(started.labels).toEqual({ customer: 'acme', env: 'a:b' });
  await result('workflows', 'run', 'note', '--input', '{"order":"B-2"}', '--label', 'customer=acme');
  const ids = async (...flags: string[]) =>
    (await result('workflows', 'runs', ...flags)).items.map(({ id }: { id: string }) => id);
  expect(await ids('--label', 'customer=acme')).toHaveLength(2);
  expect(await ids(...labels)).toEqual([started.id]);
  expect(await ids('--search', 'A-17', '--since', '1h')).toEqual([started.id]);
  expect(await ids('--until', '1h')).toEqual([]);
  expect(await platform.svc('workflows', 'runs', '--label', 'customer')).toMatchObject({ exitCode: 2 });

  await result('webhooks', 'provision', '@acme/orders', 'created');
  await result('webhooks', 'send', '@acme/orders', 'created', '--data', '{"id":1}');
  const deliveries = await result('webhooks', 'counts', '--since', '2h');
  expect(deliveries.totals).toMatchObject({ total: 1, succeeded: 1, failed: 0 });
  expect(deliveries.items.every(({ hour }: { hour: number }) => hour % HOUR_MS === 0)).toBe(true);
  const runs = await result('workflows', 'counts');
  expect([runs.items.length, runs.totals.total]).toEqual([24, 2]);
  for (const noun of ['webhooks', 'workflows']) {
    const program = join(INSTALLED, 'bin', 'svc');
    const { stdout } = await run(program, [noun, 'counts'], { cwd: platform.folder, env: userEnvironment() });
    const lines = stdout.trimEnd().split('\n');
    expect([lines.length, lines.at(-1)]).toEqual([26, expect.stringMatching(/^all +\d/)]);
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(MAX_COLUMNS);
  }
});
