import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Received, sendAsGitHub, startReceiver } from '../support/source-senders.ts';
import { type TestPlatform, testPlatform, withStandIns } from './platform.ts';

const SLOW = { timeout: 120_000 };
const SIGNATURE = 'x-hub-signature-256';

/** A running platform with a source whose deliveries are forwarded to the receiver. */
async function withSource(url: string) {
  const platform = await testPlatform(...withStandIns({ real: ['gateway', 'marketplace'] }));
  await platform.svc('up', '-d');
  const { result: source } = (await platform.svc('sources', 'create', 'gh', '--provider', 'github')).json;
  const connected = await platform.svc('sources', 'connect', 'gh', '--forward', url);
  expect(connected.code).toBe(0);
  return { platform, source };
}

/** Delivers the received requests of the source again, and returns what the receiver got. */
async function replayed({ svc }: TestPlatform, webhookId: string, received: Received[]): Promise<Received> {
  const before = received.length;
  expect((await svc('sources', 'replay', 'gh', webhookId)).json).toMatchObject({ ok: true });
  await expect.poll(() => received.length, { timeout: 20_000 }).toBe(before + 1);
  return received.at(-1)!;
}

async function urlAt({ service }: TestPlatform, url: string): Promise<string> {
  return new URL(new URL(url).pathname, (await service('gateway')).url).href;
}

test('a new master key leaves the original headers of deliveries readable', SLOW, async () => {
  const { url, received } = await startReceiver();
  const { platform, source } = await withSource(url);
  const sent = await sendAsGitHub(await urlAt(platform, source.url), source.secret, { n: 1 }, 'd-1');
  expect(sent.status).toBe(202);
  await expect.poll(() => received.length, { timeout: 20_000 }).toBe(1);
  const signature = received[0]!.headers[SIGNATURE];
  expect(signature).toMatch(/^sha256=/);
  for (let rotation = 1; rotation <= 2; rotation++) {
    await platform.svc('down');
    expect((await platform.svc('keys', 'rotate', '--yes')).json).toMatchObject({ ok: true });
    await platform.svc('up', '-d');
    const again = await replayed(platform, sent.body.webhookId, received);
    expect([again.headers[SIGNATURE], again.body.toString()]).toEqual([signature, '{"n":1}']);
  }
});

test('a backup brings sources, destinations and deliveries with their headers back', SLOW, async () => {
  const { url, received } = await startReceiver();
  const { platform, source } = await withSource(url);
  const sent = await sendAsGitHub(await urlAt(platform, source.url), source.secret, { n: 1 }, 'd-1');
  await expect.poll(() => received.length, { timeout: 20_000 }).toBe(1);
  const archive = join(platform.folder, '..', 'backup.tar.gz');
  expect((await platform.svc('backup', archive)).json).toMatchObject({ ok: true });
  await platform.svc('down');

  const other = await testPlatform(...withStandIns({ real: ['gateway', 'marketplace'] }));
  expect((await other.svc('restore', archive)).json).toMatchObject({ ok: true });
  await other.svc('up', '-d');
  const { result } = (await other.svc('sources', 'show', 'gh')).json;
  expect(result.destinations).toMatchObject([{ forward: url }]);
  const again = await replayed(other, sent.body.webhookId, received);
  expect(again.headers[SIGNATURE]).toBe(received[0]!.headers[SIGNATURE]);
  const target = await urlAt(other, source.url);
  expect((await sendAsGitHub(target, source.secret, { n: 2 }, 'd-2')).status).toBe(202);
  await expect.poll(() => received.map(({ body }) => body.toString())).toContain('{"n":2}');
});
