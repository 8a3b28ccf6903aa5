import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testPlatform, withStandIns } from '../cli/platform.ts';
import { startReceiver } from '../support/source-senders.ts';

const POLL = { timeout: 60_000, interval: 50 };

test('a service that crashes repeatedly is reported, also if it is the gateway itself', {
  timeout: 180_000,
}, async () => {
  const receiver = await startReceiver();
  const rules = { loops: { kind: 'service.crash_loop', channels: ['hook'], groupWaitMs: 0 } };
  // biome-ignore lint/suspicious/noTemplateCurlyInString: literal config syntax
  const channels = { hook: { type: 'webhook', url: receiver.url, secret: '${HOOK_SECRET}' } };
  const env = { HOOK_SECRET: `whsec_${Buffer.alloc(32, 1).toString('base64')}` };
  const platform = await testPlatform(
    ...withStandIns({ config: { alerts: { intervalMs: 100, rules, channels } }, env, real: ['gateway'] }),
  );
  expect(await platform.svc('up', '-d')).toMatchObject({ code: 0 });
  const crash = async (name: string) => {
    for (;;) {
      const { pid, state } = await platform.service(name);
      if (state === 'failed') return;
      if (state === 'ready') process.kill(pid, 'SIGKILL');
      await expect
        .poll(async () => {
          const now = await platform.service(name);
          return now.state === 'failed' || (now.state === 'ready' && now.pid !== pid);
        }, POLL)
        .toBe(true);
    }
  };
  const messages = () => receiver.received.map(({ body }) => JSON.parse(body.toString()));
  const titles = () => messages().map(({ data }) => data.alerts[0].title);

  await crash('rest');
  await expect.poll(titles, POLL).toEqual(['The service rest crashes repeatedly']);
  expect(messages()[0].data.alerts[0].message).toMatch(
    /^5 crashes in a row on node node_\S+\. Last exit: signal SIGKILL\.$/,
  );
  await crash('gateway');
  const folder = join(platform.dataDir, 'crash-loops');
  await expect.poll(() => readdir(folder), POLL).toEqual([expect.stringMatching(/^\d{15}-gateway\.json$/)]);
  expect(titles()).toHaveLength(1);
  expect(await platform.svc('restart', 'gateway')).toMatchObject({ code: 0 });
  await expect.poll(() => titles().at(-1), POLL).toBe('The service gateway crashes repeatedly');
  await expect.poll(() => readdir(folder), POLL).toEqual([]);
  expect(titles()).toHaveLength(2);
});
