import { createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { provisionWebhook } from '../src/contracts/index.ts';
import { packageRoot } from '../src/kit/files/paths.ts';
import { writeFiles } from './daemons/marketplace/support.ts';
import { tempDir } from './support/daemon.ts';
import { startGateway } from './support/gateway.ts';

const BODY = '{"id": "o-1",  "total": 3}';

test('the validator of docs/webhooks.md takes what is signed as it says, and nothing else', async () => {
  const page = await readFile(join(packageRoot, 'docs/webhooks.md'), 'utf8');
  const shown = [...page.matchAll(/<!-- file: (\S+) -->\n\n```\w+\n([\s\S]*?)```/g)];
  const files = shown.map(([, file, code]) => [`plugins/partner/${file}`, code!]);
  expect(files).toHaveLength(2);
  const projectDir = await writeFiles(await tempDir(), {
    ...Object.fromEntries(files),
    'plugins/partner/package.json': '{"name": "partner", "type": "module"}',
  });
  const gateway = await startGateway({ projectDir });
  const body = { pluginId: 'partner', event: 'order' };
  const { secret } = await gateway.call(provisionWebhook, { body });

  const deliver = async (at: number, key = secret, signed = BODY) => {
    const signature = createHmac('sha512', key).update(`${at}.${signed}`).digest('hex');
    const headers = {
      'content-type': 'application/json',
      'x-svc-namespace': 'default',
      'x-partner-time': String(at),
      'x-partner-signature': signature,
    };
    const answer = await gateway.fetch('/webhooks/partner/order', { method: 'POST', headers, body: BODY });
    return { status: answer.status, body: await answer.json() };
  };
  const now = Math.floor(Date.now() / 1000);
  expect(await deliver(now)).toMatchObject({ status: 200, body: { result: { received: 'o-1' } } });
  expect((await deliver(now, 'another secret')).status).toBe(401);
  expect((await deliver(now, secret, JSON.stringify(JSON.parse(BODY)))).status).toBe(401);
  expect((await deliver(now - 600)).status).toBe(401);
});
