import { createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished, test } from 'vitest';
import { packageRoot } from '../src/kit/files/paths.ts';
import { writeFiles } from './daemons/marketplace/support.ts';
import { spawnCli } from './support/cli.ts';
import { tempDir } from './support/daemon.ts';
import { startReceiver, withStatus } from './support/message-receiver.ts';
import { FREE_PORTS } from './support/ports.ts';
import { filesOf, Transcript } from './support/transcript.ts';
import { userEnvironment } from './support/user-environment.ts';

const ISSUE = { action: 'opened', issue: { title: 'It fails', html_url: 'https://github.com/a/b/issues/1' } };

test('docs/quickstart-outgoing.md: an issue reaches Slack and a receiver, and a dead endpoint alerts', {
  timeout: 300_000,
}, async () => {
  const page = await readFile(join(packageRoot, 'docs/quickstart-outgoing.md'), 'utf8');
  const [slack, receiver, pager] = [await startReceiver(), await startReceiver(), await startReceiver()];
  const files = filesOf(page).map(([file, code]) => [
    `plugins/issue-bot/${file}`,
    code.replace('hooks.slack.com', `127.0.0.1:${slack.port}`),
  ]);
  expect(files).toHaveLength(3);
  const folder = await writeFiles(await tempDir(), {
    ...Object.fromEntries(files),
    'svc.config.json': {
      ...FREE_PORTS,
      plugins: ['./plugins/*'],
      execution: { privateHosts: [`127.0.0.1:${slack.port}`] },
      outgoing: { allowPrivateAddresses: true },
    },
  });
  const script = new Transcript(page, folder, {
    SLACK_WEBHOOK_URL: `http://127.0.0.1:${slack.port}/services/T/B/x`,
    ALERT_WEBHOOK_URL: `${pager.url}/services/T/B/y`,
    RECEIVER_URL: receiver.url,
  });
  onTestFinished(async () => void (await spawnCli(['down'], { cwd: folder, env: userEnvironment() })));

  await script.next('up');
  await script.next('secrets set');
  const { url, secret } = await script.next('webhooks provision');
  // GitHub sends no header that names the namespace.
  expect(new URL(url).searchParams.get('namespace')).toBe('default');
  const endpoint = await script.next('endpoints create');
  script.env.ENDPOINT = endpoint.id;
  await script.next('alerts add-channel');
  await script.next('alerts add-rule');

  let deliveries = 0;
  const deliver = async () => {
    const body = JSON.stringify(ISSUE);
    const signature = createHmac('sha256', secret).update(body).digest('hex');
    const answer = await fetch(url, {
      method: 'POST',
      body,
      headers: {
        'content-type': 'application/json',
        'x-github-event': 'issues',
        'x-github-delivery': `delivery-${++deliveries}`,
        'x-hub-signature-256': `sha256=${signature}`,
      },
    });
    expect([answer.status, await answer.text()]).toMatchObject([200, expect.anything()]);
  };
  await deliver();
  await expect.poll(() => receiver.received.length, { timeout: 60_000 }).toBe(1);
  const [{ body, headers } = { body: '', headers: {} }] = receiver.received;
  expect(new Webhook(endpoint.secret).verify(body, headers as Record<string, string>)).toMatchObject({
    type: 'issue.opened',
    data: { title: 'It fails', url: ISSUE.issue.html_url },
  });
  expect(JSON.parse(slack.received[0]!.body)).toEqual({
    text: `New issue: It fails ${ISSUE.issue.html_url}`,
  });
  expect((await script.next('messages list')).items).toHaveLength(1);

  receiver.answer(withStatus(410));
  await deliver();
  await expect.poll(() => pager.received.length, { timeout: 60_000 }).toBeGreaterThan(0);
  expect(pager.received[0]!.body).toContain(endpoint.id);
  expect((await script.next('endpoints list')).items).toMatchObject([
    { id: endpoint.id, disabledReason: 'gone' },
  ]);
  expect((await script.next('messages list')).items).toHaveLength(1);

  receiver.answer(withStatus(200));
  await script.next('endpoints enable');
  await script.next('endpoints replay');
  await expect.poll(() => new Set(receiver.ids()).size, { timeout: 60_000 }).toBe(2);
  expect(script.left).toBe(0);
});
