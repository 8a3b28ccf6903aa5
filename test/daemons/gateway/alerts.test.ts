import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished, test } from 'vitest';
import {
  type AlertRule,
  acknowledgeAlert,
  connectSource,
  createAlertChannel,
  createAlertRule,
  createAlertSilence,
  createSource,
  deleteAlertChannel,
  deleteAlertRule,
  deleteAlertSilence,
  getAlert,
  listAlertChannels,
  listAlertRules,
  listAlertSilences,
  listAlerts,
  putItem,
  resolveAlert,
  type SourceName,
  testAlerts,
  updateAlertChannel,
  updateAlertRule,
} from '../../../src/contracts/index.ts';
import { ALL, FAST, PATIENT, until } from '../../support/alert-platform.ts';
import { MEMBER_TOKEN, OTHER_TOKEN, startGateway, type TestGateway } from '../../support/gateway.ts';
import { githubSignature, type Receiver, send, startReceiver } from '../../support/source-senders.ts';
import { describeOnStores } from '../../support/stores.ts';

const bodies = (receiver: Receiver) => receiver.received.map(({ body }) => JSON.parse(body.toString()));

/** Makes a delivery to a source fail for good. Returns the URL to which failing requests are sent. */
async function failingSource(gateway: TestGateway, token?: string) {
  const { url, secret } = await gateway.call(
    createSource,
    { body: { name: 'gh' as SourceName, provider: 'github' } },
    token,
  );
  await gateway.call(
    connectSource,
    {
      params: { name: 'gh' as SourceName },
      body: { queue: 'unused', transform: 'body.missing.field' } as never,
    },
    token,
  );
  return (n: number) => {
    const body = JSON.stringify({ n });
    return send(gateway.url + new URL(url).pathname, body, {
      ...githubSignature(secret, body),
      'x-github-delivery': `d-${n}`,
      'x-github-event': 'push',
    });
  };
}

describeOnStores('alerts', (storeConfig) => {
  async function start(
    config: Record<string, unknown> = {},
    options: Parameters<typeof startGateway>[0] = {},
  ): Promise<TestGateway> {
    const { alerts = {}, ...rest } = config as { alerts?: object };
    const gateway = await startGateway({
      ...options,
      config: { ...(await storeConfig()), auth: PATIENT, ...rest, alerts: { ...FAST, ...alerts } },
    });
    onTestFinished(() => gateway.close());
    return gateway;
  }

  /** A channel of operators that sends to a receiver, and a rule that uses it. */
  async function observe(
    gateway: TestGateway,
    receiver: Receiver,
    rule: Partial<AlertRule> & Pick<AlertRule, 'kind'>,
  ): Promise<string> {
    const { secret } = await gateway.call(createAlertChannel, {
      ...ALL,
      body: { name: 'hook', type: 'webhook', url: `${receiver.url}/alerts` },
    });
    await gateway.call(createAlertRule, {
      ...ALL,
      body: { name: 'observed', channels: ['hook'], groupWaitMs: 1000, ...rule } as never,
    });
    return secret!;
  }

  test('a failed delivery is reported once, signed, with a link, and deliveries of one wait share a message', async () => {
    const gateway = await start({ gateway: { publicUrl: 'https://svc.example' } });
    const receiver = await startReceiver();
    const secret = await observe(gateway, receiver, { kind: 'delivery.failed', match: { source: 'g*' } });
    const fail = await failingSource(gateway);
    for (const n of [1, 2, 3]) await fail(n);
    // In small steps, so that the wait of the first alert does not end before the last one is known.
    await until(gateway, async () => (await gateway.call(listAlerts, { query: {} })).items.length, 3, 20);
    await until(gateway, () => receiver.received.length, 1);
    const [received] = receiver.received;
    const headers = received!.headers as Record<string, string>;
    const signature = new Webhook(secret).sign(
      headers['webhook-id']!,
      new Date(Number(headers['webhook-timestamp']) * 1000),
      received!.body.toString(),
    );
    expect(headers['webhook-signature']).toBe(signature);
    const [message] = bodies(receiver);
    expect(message).toMatchObject({ type: 'alert.firing', data: { rule: 'observed', total: 3, firing: 3 } });
    const { items } = await gateway.call(listAlerts, { query: {} });
    expect(items).toHaveLength(3);
    const found = await gateway.call(listAlerts, { query: { object: items[0]!.object.id } });
    expect(found.items).toEqual([items[0]]);
    expect(items[0]).toMatchObject({
      ...{ kind: 'delivery.failed', state: 'firing', namespaceId: '*', rule: 'observed', count: 1 },
      object: { type: 'delivery', namespaceId: 'default', labels: { source: 'gh', namespace: 'default' } },
      link: `https://svc.example/studio/deliveries/${items[0]!.object.id}`,
    });
    const read = () => gateway.call(getAlert, { params: { id: items[0]!.id } });
    // The receiver has the message before its answer is recorded.
    await expect.poll(async () => (await read()).notifications[0]?.status).toBe('sent');
    const details = await read();
    expect(details.notifications).toMatchObject([
      { channel: 'hook', reason: 'firing', status: 'sent', alerts: 3, attempts: [{ ok: true, status: 200 }] },
    ]);
    expect(details.notifications[0]!.id).toBe(headers['webhook-id']);
    gateway.clock.advance(3600_000);
    await until(gateway, () => receiver.received.length, 1);
  });

  test('a failing channel is retried with the same id, is visible, and delays no other channel', async () => {
    const gateway = await start();
    const [bad, good] = [await startReceiver(), await startReceiver()];
    bad.answer = () => ({ status: 500, body: 'out of order' });
    await observe(gateway, bad, { kind: 'disk.low', threshold: { freePercent: 100 } });
    await gateway.call(createAlertChannel, {
      ...ALL,
      body: { name: 'good', type: 'webhook', url: good.url },
    });
    await gateway.call(updateAlertRule, {
      ...ALL,
      params: { name: 'observed' },
      body: { channels: ['hook', 'good'] },
    });
    await until(gateway, () => good.received.length, 1);
    await until(gateway, () => bad.received.length >= 2, true);
    const ids = new Set(bad.received.map(({ headers }) => headers['webhook-id']));
    expect(ids.size).toBe(1);
    const { items } = await gateway.call(listAlertChannels, { query: {} });
    expect(items).toMatchObject([
      { name: 'good', failing: false, lastError: null, pending: 0 },
      { name: 'hook', failing: true, lastError: 'The receiver answered 500: out of order', pending: 1 },
    ]);
    const metrics = await (await gateway.fetch('/metrics')).text();
    expect(metrics).toMatch(/svc_alerts_attempts_total\{[^}]*type="webhook",result="failed"[^}]*\} [1-9]/);
    expect(metrics).toMatch(/svc_alerts_pending_notifications\{[^}]*channel="hook"[^}]*\} 1/);
    expect(metrics).toMatch(/svc_alerts_firing\{[^}]*kind="disk.low"[^}]*\} 1/);
    bad.answer = () => ({ status: 204 });
    gateway.clock.advance(60_000);
    await until(
      gateway,
      async () => (await gateway.call(listAlertChannels, { query: {} })).items[1]!.failing,
      false,
    );
    expect(good.received).toHaveLength(1);
  });

  test('a full queue is reported, repeated while it lasts, and resolved', async () => {
    const gateway = await start();
    const receiver = await startReceiver();
    await observe(gateway, receiver, {
      kind: 'queue.depth',
      match: { queue: 'orders' },
      threshold: { depth: 2 },
      repeatIntervalMs: 600_000,
    });
    const put = (id: string) => gateway.call(putItem, { params: { name: 'orders' }, body: { id, body: 1 } });
    await put('a');
    await put('b');
    await until(gateway, () => bodies(receiver).map(({ type }) => type), ['alert.firing']);
    gateway.clock.advance(600_000);
    await until(gateway, () => bodies(receiver).map(({ type }) => type), ['alert.firing', 'alert.repeat']);
    await gateway.call(updateAlertRule, {
      ...ALL,
      params: { name: 'observed' },
      body: { threshold: { depth: 3 } },
    });
    await until(gateway, () => bodies(receiver).at(-1).type, 'alert.resolved');
    const [alert] = (await gateway.call(listAlerts, { query: { state: 'resolved' } })).items;
    expect(alert).toMatchObject({ object: { type: 'queue', id: 'default/orders' }, count: 1 });
    const incidents = new Set(bodies(receiver).map(({ data }) => data.incident));
    expect(incidents.size).toBe(1);
    expect(receiver.received).toHaveLength(3);
  });

  test('silenced alerts are recorded and not sent until the silence ends', async () => {
    const gateway = await start();
    const receiver = await startReceiver();
    const { id } = await gateway.call(createAlertSilence, {
      ...ALL,
      body: { matcher: { kind: 'disk.low' }, until: gateway.clock.now() + 3600_000, comment: 'known' },
    });
    await observe(gateway, receiver, { kind: 'disk.low', threshold: { freePercent: 100 } });
    const states = async () =>
      (await gateway.call(listAlerts, { query: {} })).items.map(({ state }) => state);
    await until(gateway, states, ['silenced']);
    for (let i = 0; i < 20; i++) await until(gateway, () => receiver.received.length, 0);
    expect((await gateway.call(listAlertSilences, { query: {} })).items).toMatchObject([
      { id, active: true, comment: 'known', createdBy: 'operator' },
    ]);
    await gateway.call(deleteAlertSilence, { params: { id } });
    await until(gateway, () => receiver.received.length, 1);
    expect(await states()).toEqual(['firing']);
  });

  test('a silence ends by itself', async () => {
    const gateway = await start();
    const receiver = await startReceiver();
    await gateway.call(createAlertSilence, {
      ...ALL,
      body: { matcher: { rule: 'observed' }, until: gateway.clock.now() + 60_000 },
    });
    await observe(gateway, receiver, { kind: 'disk.low', threshold: { freePercent: 100 } });
    const states = async () =>
      (await gateway.call(listAlerts, { query: {} })).items.map(({ state }) => state);
    await until(gateway, states, ['silenced']);
    gateway.clock.advance(60_000);
    await until(gateway, () => receiver.received.length, 1);
  });

  test('an alert can be acknowledged and resolved, and a deleted rule ends its alerts without a message', async () => {
    const gateway = await start();
    const receiver = await startReceiver();
    await observe(gateway, receiver, {
      kind: 'disk.low',
      threshold: { freePercent: 100 },
      repeatIntervalMs: 60_000,
    });
    await until(gateway, () => receiver.received.length, 1);
    const [alert] = (await gateway.call(listAlerts, { query: {} })).items;
    const params = { id: alert!.id };
    expect(await gateway.call(acknowledgeAlert, { params })).toMatchObject({ acknowledgedBy: 'operator' });
    gateway.clock.advance(120_000);
    for (let i = 0; i < 10; i++) await until(gateway, () => receiver.received.length, 1);
    await gateway.call(deleteAlertRule, { ...ALL, params: { name: 'observed' } });
    await until(gateway, async () => (await gateway.call(getAlert, { params })).state, 'resolved');
    await expect(gateway.call(resolveAlert, { params })).rejects.toMatchObject({ code: 'CONFLICT' });
    expect(receiver.received).toHaveLength(1);
  });

  test('alerts and their notifications survive a restart, and what failed meanwhile is sent', async () => {
    const receiver = await startReceiver();
    // biome-ignore lint/suspicious/noTemplateCurlyInString: literal config syntax
    const channels = { hook: { type: 'webhook', url: receiver.url, secret: '${HOOK_SECRET}' } };
    const rules = { failures: { kind: 'delivery.failed', channels: ['hook'], groupWaitMs: 60_000 } };
    const env = { HOOK_SECRET: `whsec_${Buffer.alloc(24, 1).toString('base64')}` };
    const config = { ...(await storeConfig()), auth: PATIENT, alerts: { ...FAST, rules, channels } };
    const first = await startGateway({ config, env });
    const fail = await failingSource(first);
    await fail(1);
    await until(first, async () => (await first.call(listAlerts, { query: {} })).items.length, 1);
    await first.close();
    expect(receiver.received).toEqual([]);
    const second = await startGateway({ config, env, dataDir: first.dataDir });
    onTestFinished(() => second.close());
    second.clock.jump(first.clock.now());
    second.clock.advance(60_000);
    await until(second, () => bodies(receiver).map(({ data }) => data.total), [1]);
    expect((await second.call(listAlertRules, { query: {} })).items).toMatchObject([
      { name: 'failures', namespaceId: '*', declared: true, firing: 1, faults: [] },
    ]);
    await expect(
      second.call(updateAlertRule, { params: { name: 'failures' }, body: { enabled: false } }),
    ).rejects.toMatchObject({ code: 'CONFLICT' });
  });

  test('a crash loop that the supervisor has recorded is reported, and ends', async () => {
    const gateway = await start();
    const receiver = await startReceiver();
    await observe(gateway, receiver, { kind: 'service.crash_loop', match: { service: 'rest' } });
    const folder = join(gateway.dataDir, 'crash-loops');
    await mkdir(folder, { recursive: true });
    const at = gateway.clock.now();
    const loop = { service: 'rest', node: 'n1', crashes: 5, reason: 'exit code 1', at };
    await writeFile(join(folder, '1-rest.json'), JSON.stringify(loop));
    await writeFile(join(folder, '2-rest.json'), '{"torn');
    await writeFile(join(folder, '3-gateway.json'), JSON.stringify({ ...loop, service: 'gateway' }));
    await until(gateway, () => receiver.received.length, 1);
    expect(bodies(receiver)[0].data.alerts).toMatchObject([
      { title: 'The service rest crashes repeatedly', object: { id: 'n1/rest' } },
    ]);
    expect(await readdir(folder)).toEqual([]);
    gateway.clock.advance(700_000);
    await until(gateway, () => bodies(receiver).map(({ type }) => type), ['alert.firing', 'alert.resolved']);
  });

  test('tenants have rules and channels of their own, see only their objects, and cannot reach private addresses', async () => {
    const gateway = await start();
    const receiver = await startReceiver();
    const url = receiver.url;
    const channel = { name: 'hook', type: 'webhook' as const, url };
    await gateway.call(createAlertChannel, { body: channel }, OTHER_TOKEN);
    await gateway.call(
      createAlertRule,
      { body: { name: 'mine', kind: 'delivery.failed', channels: ['hook'], groupWaitMs: 0 } },
      OTHER_TOKEN,
    );
    const fail = await failingSource(gateway);
    await fail(1);
    const failOther = await failingSource(gateway, OTHER_TOKEN);
    await failOther(2);
    await until(
      gateway,
      async () => (await gateway.call(listAlerts, { query: {} }, OTHER_TOKEN)).items.length,
      1,
    );
    const [alert] = (await gateway.call(listAlerts, { query: {} }, OTHER_TOKEN)).items;
    expect(alert).toMatchObject({ namespaceId: 'other', object: { namespaceId: 'other' } });
    await until(
      gateway,
      async () =>
        (await gateway.call(getAlert, { params: { id: alert!.id } }, OTHER_TOKEN)).notifications[0]
          ?.attempts[0],
      expect.objectContaining({ ok: false, error: expect.stringContaining('are refused') }),
    );
    expect(receiver.received).toEqual([]);
    const refused = { code: 'FORBIDDEN' };
    for (const kind of ['disk.low', 'service.crash_loop'] as const)
      await expect(
        gateway.call(createAlertRule, { body: { name: 'disk', kind, channels: [] } }, OTHER_TOKEN),
      ).rejects.toMatchObject(refused);
    await expect(
      gateway.call(createAlertChannel, { ...ALL, body: channel }, MEMBER_TOKEN),
    ).rejects.toMatchObject(refused);
    await expect(gateway.call(listAlertRules, { ...ALL } as never, MEMBER_TOKEN)).rejects.toMatchObject(
      refused,
    );
    expect((await gateway.call(listAlertRules, { query: {} }, MEMBER_TOKEN)).items).toEqual([]);
    await expect(gateway.call(getAlert, { params: { id: alert!.id } }, MEMBER_TOKEN)).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
    await expect(gateway.call(testAlerts, { body: { channel: 'hook' } }, MEMBER_TOKEN)).rejects.toMatchObject(
      { code: 'NOT_FOUND' },
    );
  });

  test('secrets of channels are sealed, never answered, and not sent to a changed receiver', async () => {
    const gateway = await start();
    const email = {
      ...{
        name: 'mail',
        type: 'email' as const,
        host: 'smtp.example',
        user: 'svc',
        password: 'hunter2-of-mail',
      },
      ...{ from: 'a@example.com', to: ['b@example.com'] },
    };
    await gateway.call(createAlertChannel, { body: email });
    await gateway.call(createAlertChannel, {
      body: { name: 'chat', type: 'slack', url: 'https://hooks.slack.com/services/T0/B0/secret-of-slack' },
    });
    const listed = JSON.stringify(await gateway.call(listAlertChannels, { query: {} }));
    expect(listed).not.toContain('hunter2-of-mail');
    expect(listed).not.toContain('secret-of-slack');
    const change = (body: object) =>
      gateway.call(updateAlertChannel, { params: { name: 'mail' }, body: body as never });
    for (const moved of [{ host: 'evil.example' }, { port: 25 }, { security: 'none' }, { user: 'x' }])
      await expect(change(moved)).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
    expect(await change({ host: 'smtp2.example', password: 'again' })).toMatchObject({
      settings: { host: 'smtp2.example', user: 'svc' },
      hasSecret: true,
    });
    await expect(change({ routingKey: 'x' })).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
    // biome-ignore lint/suspicious/noTemplateCurlyInString: literal config syntax
    for (const password of ['${HOME}', 'two\r\nlines'])
      await expect(change({ password })).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
    await expect(change({ to: ['b@example.com\r\nBcc: x@example.com'] })).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
    });
    await gateway.call(createAlertRule, { body: { name: 'r', kind: 'run.failed', channels: ['chat'] } });
    await expect(gateway.call(deleteAlertChannel, { params: { name: 'chat' } })).rejects.toMatchObject({
      code: 'CONFLICT',
    });
    expect(await gateway.call(deleteAlertChannel, { params: { name: 'mail' } })).toEqual({ deleted: true });
  });
});
