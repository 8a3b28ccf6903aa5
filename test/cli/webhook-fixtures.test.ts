import { createHmac } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { WebhookFixture } from '../../src/contracts/index.ts';
import { createTestHost } from '../../src/testing/index.ts';
import { runCli } from '../support/cli.ts';
import { tempDir } from '../support/daemon.ts';
import { ADMIN_TOKEN, type TestGateway } from '../support/gateway.ts';
import { SENDERS, secretOf, send, startSenders } from '../support/webhook-senders.ts';

/** Spaces and escapes that a parser would not keep. */
const BODY = '{ "id": "f-1",\n  "n": "caf\\u00e9" }';

/** Delivers `BODY`, signed as GitHub does, and returns the id of the delivery. */
async function deliverOnce(gateway: TestGateway, secret: string): Promise<string> {
  const response = await fetch(`${gateway.url}/webhooks/senders/github`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-svc-namespace': 'default',
      'x-github-event': 'push',
      'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(BODY).digest('hex')}`,
    },
    body: BODY,
  });
  expect(response.status).toBe(200);
  return response.headers.get('x-webhook-id')!;
}

async function started() {
  const gateway = await startSenders();
  const cwd = await tempDir();
  const svc = async (...words: string[]) => {
    const args = [...words, '--url', gateway.url, '--token', ADMIN_TOKEN, '--json'];
    const { stdout } = await runCli(args, { cwd, env: { PATH: process.env.PATH } });
    const { ok, result, error } = JSON.parse(stdout);
    return ok ? result : error;
  };
  return { gateway, cwd, svc };
}

test('a delivery is saved without its secrets, sent again, and replayed in a test of the plugin', async () => {
  const { gateway, cwd, svc } = await started();
  const secret = await secretOf(gateway, 'github');
  const webhookId = await deliverOnce(gateway, secret);

  const { file, fixture } = await svc('webhooks', 'fixture', webhookId);
  expect(file).toBe(join(cwd, `senders-github-${webhookId.slice(-6)}.json`));
  const text = await readFile(file, 'utf8');
  expect(text).not.toMatch(new RegExp(`${secret}|signature|x-svc-|authorization`, 'i'));
  expect(JSON.parse(text)).toEqual(fixture);
  expect(fixture satisfies WebhookFixture).toMatchObject({
    format: 'svc.webhook-fixture/1',
    event: 'github',
    headers: { 'content-type': 'application/json', 'x-github-event': 'push' },
    body: BODY,
    status: 200,
  });

  const again = await svc('webhooks', 'send', 'senders', 'github', '--fixture', file);
  expect(again).toMatchObject({ status: 200, body: { result: { saw: { id: 'f-1', n: 'café' } } } });
  expect(await svc('webhooks', 'show', again.webhookId)).toMatchObject({ body: BODY, origin: 'sample' });

  const host = await createTestHost({ plugin: join(SENDERS, 'plugins/senders') });
  onTestFinished(() => host.close());
  expect(await host.replay(file)).toMatchObject({ status: 200, body: { result: { saw: { id: 'f-1' } } } });
  expect(await host.replay(fixture, { namespaceId: 'acme' })).toMatchObject({ status: 200 });
});

test('a fixture is not overwritten by mistake, and must have a body', async () => {
  const { gateway, cwd, svc } = await started();
  const secret = await secretOf(gateway, 'sync');
  const sent = async () => (await send(gateway, 'sync', secret, { id: 1 })).headers.get('x-webhook-id')!;
  const webhookId = await sent();
  const file = join(cwd, 'kept.json');
  await writeFile(file, 'mine');
  const words = ['webhooks', 'fixture', webhookId, '--out', file];
  expect(await svc(...words)).toMatchObject({
    code: 'STORE_ERROR',
    details: { hint: expect.stringContaining('--force') },
  });
  expect(await readFile(file, 'utf8')).toBe('mine');
  expect(await svc(...words, '--force')).toMatchObject({ fixture: { event: 'sync' } });
  expect(await svc('webhooks', 'fixture', await sent())).toMatchObject({ code: 'CONFLICT' });
});

test('a file that is no fixture is refused with the way to save one', async () => {
  const { cwd, svc } = await started();
  const file = join(cwd, 'other.json');
  await writeFile(file, '{"id": 1}');
  expect(await svc('webhooks', 'send', 'senders', 'github', '--fixture', file)).toMatchObject({
    message: expect.stringContaining('svc webhooks fixture'),
  });
  const host = await createTestHost({ plugin: join(SENDERS, 'plugins/senders') });
  onTestFinished(() => host.close());
  await expect(host.replay(file)).rejects.toMatchObject({
    code: 'VALIDATION_ERROR',
    message: expect.stringContaining('svc webhooks fixture'),
  });
});
