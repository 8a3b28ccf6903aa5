import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { writeFiles } from '../daemons/marketplace/support.ts';
import { tempDir } from '../support/daemon.ts';
import { testPlatform, withStandIns } from './platform.ts';

const MANIFEST = {
  schema: 'svc.plugin/3',
  id: 'orders',
  version: '1.0.0',
  commands: [{ id: 'count', handler: 'dist/h.js#count' }],
  rest: {
    basePath: '/v1/plugins/orders',
    routes: [{ method: 'GET', path: '/count', handler: 'dist/h.js#count', security: ['none'] }],
  },
};
/** As a bundler leaves it: `throw` of the output is line 3, column 3 of src/main.ts. */
const BUNDLED = {
  'package.json': { type: 'module' },
  'svc.plugin.json': MANIFEST,
  'dist/h.js':
    'const count=()=>{throw new Error("no stock")};export{count};\n//# sourceMappingURL=h.js.map\n',
  'dist/h.js.map': JSON.stringify({
    version: 3,
    sources: ['../src/main.ts'],
    names: [],
    mappings: 'AAAA,iBAEE',
  }),
  'src/main.ts': 'export const count = () => {\n  // why\n  throw new Error("no stock");\n};\n',
};

test('dev prints the stack of a failing call with source positions; route callers do not see it', async () => {
  const { svc, start } = await testPlatform(...withStandIns({ real: ['marketplace', 'rest', 'gateway'] }));
  expect((await svc('up', '-d')).code).toBe(0);
  const folder = await writeFiles(join(await tempDir(), 'orders'), BUNDLED);
  const readable = start('plugins', 'dev', folder);
  onTestFinished(() => void readable.child.kill('SIGKILL'));
  await expect.poll(readable.stderr, { timeout: 15_000 }).toContain('; watching ');
  const records = start('plugins', 'dev', folder, '--json');
  onTestFinished(() => void records.child.kill('SIGKILL'));
  await expect.poll(records.stderr, { timeout: 15_000 }).toContain('; watching ');

  expect(await svc('run', 'orders', 'count')).toMatchObject({
    code: 1,
    json: { error: { code: 'EXECUTION_ERROR', details: { at: 'src/main.ts:3:3' } } },
  });
  const stack = expect.stringMatching(
    /"dist\/h\.js#count" failed: no stock .*\n {4}Error: no stock\n {8}at .*src\/main\.ts:3:3/,
  );
  await expect.poll(readable.stdout, { timeout: 15_000 }).toEqual(stack);
  await expect.poll(records.stdout, { timeout: 15_000 }).toContain('"log":');
  const told = JSON.parse(
    records
      .stdout()
      .split('\n')
      .find((line) => line.includes('"log":'))!,
  );
  expect(told).toMatchObject({
    at: expect.stringMatching(/^\d{4}-.*Z$/),
    log: {
      level: 'error',
      pluginId: 'orders',
      meta: { at: 'src/main.ts:3:3', stack: expect.stringContaining('src/main.ts:3:3') },
    },
  });

  const { SVC_GATEWAY_URL, SVC_TOKEN } = (await svc('status', '--env')).json.result.env;
  const shown = () => readable.stdout().split('failed: no stock').length - 1;
  const before = shown();
  const reply = await fetch(`${SVC_GATEWAY_URL}/api/v1/plugins/orders/count`, {
    headers: { authorization: `Bearer ${SVC_TOKEN}` },
  });
  expect([reply.status, await reply.text()]).toEqual([500, expect.not.stringContaining('no stock')]);
  await expect.poll(shown, { timeout: 15_000 }).toBe(before + 1);
});
