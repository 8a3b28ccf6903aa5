import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  connectSource,
  createSource,
  getDelivery,
  getSource,
  leaseItems,
  listAudit,
  listDeliveries,
  listSources,
  listWebhooks,
  provisionWebhook,
  rotateSource,
  type SourceName,
} from '../../../src/contracts/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { startOtlpReceiver } from '../../support/otlp.ts';
import { startReceiver } from '../../support/source-senders.ts';

const PLUGIN = 'images';

async function projectWithTokenInUrl(): Promise<string> {
  const project = await tempDir();
  const folder = join(project, 'plugins', PLUGIN);
  await mkdir(folder, { recursive: true });
  const code =
    "import { defineWebhook } from 'svc-platform/sdk';\nexport const onPush = defineWebhook({ async execute() {} });\n";
  const auth = { type: 'provider', provider: 'docker-hub' };
  const webhooks = [{ event: 'push', handler: 'hooks.js#onPush', async: true, auth }];
  const manifest = { schema: 'svc.plugin/3', id: PLUGIN, version: '1.0.0', webhooks };
  await writeFile(join(folder, 'hooks.js'), code);
  await writeFile(join(folder, 'package.json'), '{"name":"images","version":"1.0.0","type":"module"}');
  await writeFile(join(folder, 'svc.plugin.json'), JSON.stringify(manifest));
  return project;
}

/** Sends what is accepted, refused as malformed, too large, of another method, and of another URL below the token. */
async function sendAll(url: string): Promise<number[]> {
  const json = { 'content-type': 'application/json' };
  const post = (body: string, target = url) => fetch(target, { method: 'POST', body, headers: json });
  const below = new URL(url);
  below.pathname += '/more';
  const answers = [
    await post('{"n":1}'),
    await post('{"n":'),
    await post(JSON.stringify('x'.repeat(2_000_000))),
    await fetch(url),
    await fetch(url, { method: 'DELETE' }),
    await post('{}', below.href),
    await post('{}', `${url}${url.includes('?') ? '&' : '?'}again=1`),
  ];
  for (const answer of answers) await answer.text();
  return answers.map(({ status }) => status);
}

async function shownBy(gateway: TestGateway): Promise<unknown[]> {
  const { items } = await gateway.call(listDeliveries, { query: { limit: 100 } as never });
  const records = items.map(({ webhookId }) => gateway.call(getDelivery, { params: { webhookId } }));
  const name = 'plain' as SourceName;
  return Promise.all([
    items,
    ...records,
    gateway.call(listSources),
    gateway.call(getSource, { params: { name } }),
    gateway.call(listWebhooks),
    gateway.call(listAudit, { query: { limit: 500 } as never }),
    gateway.call(leaseItems, { params: { name: 'jobs' }, body: { max: 100, raw: true } }),
    gateway.fetch('/metrics').then((answer) => answer.text()),
  ]);
}

/** Names of the files of a folder that contain a text. */
async function filesWith(folder: string, text: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
  const contents = await Promise.all(files.map(async (file) => ({ file, bytes: await readFile(file) })));
  expect(contents.length).toBeGreaterThan(0);
  return contents.filter(({ bytes }) => bytes.includes(text)).map(({ file }) => file);
}

test('no token of a URL is logged, recorded, traced, audited, listed, forwarded or stored', async () => {
  const { endpoint, spans } = await startOtlpReceiver();
  const receiver = await startReceiver();
  const projectDir = await projectWithTokenInUrl();
  const gateway = await startGateway({ projectDir, otlp: { endpoint, headers: {} } });
  const name = 'plain' as SourceName;
  const plain = await gateway.call(createSource, { body: { name, auth: { type: 'token' } } });
  const hub = await gateway.call(createSource, {
    body: { name: 'hub' as SourceName, provider: 'docker-hub' },
  });
  const body = { pluginId: PLUGIN, event: 'push', namespaceInUrl: true };
  const webhook = await gateway.call(provisionWebhook, { body: body as never });
  await gateway.call(connectSource, { params: { name }, body: { forward: receiver.url } });
  await gateway.call(connectSource, { params: { name }, body: { queue: 'jobs' } });
  const rotated = await gateway.call(rotateSource, { params: { name }, body: {} });
  const inPath = [plain, hub, rotated].map(({ url }) => new URL(url).pathname.split('/').at(-1)!);
  const tokens = [...inPath, new URL(webhook.url).searchParams.get('token')!];
  for (const token of tokens) expect(token).toMatch(/^.{32,}$/);

  for (const { url } of [plain, hub, rotated, webhook]) {
    const [accepted, ...others] = await sendAll(url);
    expect([200, 202], url).toContain(accepted);
    expect(others.slice(0, 4).every((status) => status >= 400)).toBe(true);
  }
  await expect.poll(() => receiver.received.length).toBeGreaterThan(1);
  const shown = await shownBy(gateway);
  await gateway.close();
  const sent = receiver.received.map(({ url, headers, body: bytes }) => [url, headers, bytes.toString()]);
  expect(spans).not.toEqual([]);
  // The search finds texts that are stored.
  expect(await filesWith(gateway.dataDir, receiver.url)).not.toEqual([]);
  const places = { shown, sent, spans, logs: gateway.logs.lines };
  for (const token of tokens) {
    for (const [place, content] of Object.entries(places))
      expect(JSON.stringify(content).includes(token), `${place} contains ${token}`).toBe(false);
    expect(await filesWith(gateway.dataDir, token)).toEqual([]);
  }
});
