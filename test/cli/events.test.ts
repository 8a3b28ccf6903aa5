import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCli } from '../support/cli.ts';
import { testPlatform, withStandIns } from './platform.ts';

const POLL = { timeout: 15_000, interval: 100 };
const PROJECT = join(import.meta.dirname, '../fixtures/projects/telemetry');

test('events of a real call are listed, counted with bars, and followed', { timeout: 60_000 }, async () => {
  const { folder, env, svc, start, service } = await testPlatform(
    ...withStandIns({ real: ['marketplace', 'rest', 'gateway'] }),
  );
  await cp(join(PROJECT, 'plugins'), join(folder, 'plugins'), { recursive: true });
  await svc('up', '-d');
  const { url } = await service('rest');
  const tell = async (name: string): Promise<void> => {
    const response = await fetch(`${url}/api/v1/plugins/teller/tell`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name, payload: { amount: 3 } }),
    });
    expect(response.status).toBe(200);
  };
  await tell('order.paid');
  await tell('order.paid');
  await expect
    .poll(async () => (await svc('events', 'list', '--type', 'order.paid')).json.result.total, POLL)
    .toBe(2);

  const { json } = await svc('events', 'list', '--source', '@acme/teller', '-n', '1');
  expect(json).toMatchObject({
    ok: true,
    result: { total: 2, items: [{ type: 'order.paid', schema: 'svc.v1', payload: { amount: 3 } }] },
  });
  const { result } = (await svc('events', 'stats', '--since', '1h')).json;
  expect(result).toMatchObject({
    total: 4,
    byType: { 'order.paid': 2, 'plugin.command.completed': 2 },
    bySource: { svc: 2, '@acme/teller': 2 },
    daily: [{ total: 4 }],
  });
  const { stdout } = await runCli(['event', 'stats'], { cwd: folder, env });
  expect(stdout).toMatch(/^order\.paid +2 {2}█{40}$/m);
  expect(stdout).toContain('4 in total');
  expect((await svc('events', 'list', '--since', 'lately')).code).toBe(2);

  const following = start('events', 'tail', '--type', 'order.sent', '--json');
  await expect
    .poll(async () => {
      await tell('order.sent');
      return following.stdout();
    }, POLL)
    .toContain('"order.sent"');
  following.child.kill('SIGINT');
  await following.done;
  const lines = following.stdout().trim().split('\n');
  const ids = lines.map((line) => JSON.parse(line).id);
  expect(new Set(ids).size).toBe(ids.length);
});
