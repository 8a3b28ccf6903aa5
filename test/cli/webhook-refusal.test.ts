import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testPlatform, withStandIns } from './platform.ts';

const FOLDER = 'plugins/open';

test('svc up names the plugin that declares a webhook without a known auth, and exits', async () => {
  const platform = await testPlatform(...withStandIns({ real: ['gateway'] }));
  const folder = join(platform.folder, FOLDER);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  await writeFile(join(folder, 'hooks.js'), 'export const on = () => {};\n');
  for (const auth of [undefined, { type: 'trust-me' }]) {
    const webhooks = [{ event: 'any', handler: 'hooks.js#on', auth }];
    const manifest = { schema: 'svc.plugin/3', id: 'open', version: '1.0.0', webhooks };
    await writeFile(join(folder, 'svc.plugin.json'), JSON.stringify(manifest));
    const { code, json } = await platform.svc('up', '-d');
    expect([code, json.error]).toMatchObject([
      1,
      {
        code: 'INVALID_MANIFEST',
        message: expect.stringMatching(/^The gateway does not start .*open: webhooks\[0\]\.auth/s),
        details: { faults: [{ plugin: 'open' }] },
      },
    ]);
    expect((await platform.svc('status')).json.result.running).toBe(false);
  }
}, 120_000);
