import { createServer } from 'node:net';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { expect, onTestFinished, test } from 'vitest';
import type { AlertChannelSettings } from '../../../src/contracts/index.ts';
import {
  ChannelCalls,
  safeText,
  sealContext,
} from '../../../src/daemons/gateway/domain/alerts/channel-calls.ts';
import { mrkdwn } from '../../../src/daemons/gateway/domain/alerts/channels/slack.ts';
import type { Notification } from '../../../src/daemons/gateway/domain/alerts/notification.ts';
import { OutgoingClient } from '../../../src/daemons/outgoing/outgoing-client.ts';
import { createSeal } from '../../../src/kit/security/keys.ts';
import { systemClock } from '../../../src/kit/time/clock.ts';
import { TEST_KEYS } from '../../support/daemon.ts';
import { startReceiver } from '../../support/source-senders.ts';

const SEAL = createSeal(TEST_KEYS.masterKey);
const EVIL = 'ship\r\nBcc: x@evil.example <!channel> *bold* <https://evil.example|click>';
const NOTIFICATION: Notification = {
  ...{ id: 'ntf_1', createdAt: 0, reason: 'firing', rule: 'runs', kind: 'run.failed', severity: 'critical' },
  ...{
    incident: 'incident_1',
    firing: 2,
    uncounted: 0,
    total: 2,
    alertIds: ['alert_1', 'alert_2'],
    attempts: [],
  },
  alerts: [1, 2].map((n) => ({
    ...{
      id: `alert_${n}`,
      title: `A run of ${EVIL} failed`,
      message: `Run ${n}.`,
      path: `/studio/runs/${n}`,
    },
    ...{ count: n, firstAt: 0, state: 'firing' as const },
    object: { type: 'run', id: `${n}`, namespaceId: 'default' },
  })),
};

function open(timeoutMs = 5000): ChannelCalls {
  const client = new OutgoingClient({ allowedHosts: [], setting: 'outgoing.allow' });
  onTestFinished(() => client.close());
  return new ChannelCalls({
    ...{
      client,
      allowedHosts: [],
      allowPrivateAddresses: false,
      env: {},
      seal: SEAL,
      clock: systemClock,
      timeoutMs,
    },
    publicUrl: () => 'https://svc.example',
    findSecret: async () => 'unused',
  });
}

/** Sends as a channel of operators, or of the namespace. */
function send(
  settings: AlertChannelSettings,
  secret: string | null,
  {
    change = {},
    namespaceId = '*',
    timeoutMs = 5000,
  }: { change?: Partial<Notification>; namespaceId?: string; timeoutMs?: number } = {},
) {
  const sealed = secret === null ? null : { sealed: SEAL.seal(secret, sealContext(namespaceId, 'c')) };
  const channel = { namespaceId, name: 'c', description: null, declared: false, createdAt: 0, updatedAt: 0 };
  return open(timeoutMs).send({ ...channel, settings, secret: sealed }, { ...NOTIFICATION, ...change });
}

interface Mail {
  to: string[];
  text: string;
}

async function mailServer(options: SMTPServerOptions = {}): Promise<{ port: number; mails: Mail[] }> {
  const mails: Mail[] = [];
  const server = new SMTPServer({
    authOptional: true,
    onAuth: ({ username, password }, _session, done) =>
      username === 'svc' && password === 'a-password'
        ? done(null, { user: 'svc' })
        : done(new Error(`Refused ${password}`)),
    onData(stream, session, done) {
      let text = '';
      stream.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      stream.on('end', () => {
        mails.push({ to: session.envelope.rcptTo.map(({ address }) => address), text });
        done();
      });
    },
    ...options,
  });
  server.on('error', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return { port: (server.server.address() as { port: number }).port, mails };
}

const mail = (port: number, change: object = {}): AlertChannelSettings => ({
  ...{ type: 'email', host: '127.0.0.1', port, security: 'none', ca: null, user: null },
  ...{ from: 'svc@example.com', to: ['ops@example.com', 'dev@example.com'] },
  ...change,
});

test('a mail has one subject line, its recipients, a link and an id that retries keep', async () => {
  const { port, mails } = await mailServer({ disabledCommands: ['STARTTLS'] });
  expect(await send(mail(port), null)).toMatchObject({ ok: true, status: 250, error: null });
  const [{ to, text }] = mails as [Mail];
  expect(to).toEqual(['ops@example.com', 'dev@example.com']);
  const [headers, body] = text.split('\r\n\r\n') as [string, string];
  expect(headers).toMatch(/^Message-ID: <ntf_1@example\.com>$/m);
  expect(headers).toMatch(/^From: svc alerts <svc@example\.com>$/m);
  expect(headers).not.toMatch(/^Bcc:/im);
  expect(headers.replaceAll(/\r\n[ \t]/g, ' ')).toMatch(
    /^Subject: Firing: A run of ship Bcc: x@evil\.example.*\(and 1 more\)\r?$/m,
  );
  expect(body + text).toContain('https://svc.example/studio/runs/1');
});

test('a mail server with TLS and a password is used, and a wrong password is not repeated in the error', async () => {
  const { port, mails } = await mailServer({ authOptional: false });
  const secured = mail(port, { security: 'starttls', user: 'svc' });
  // The certificate of the test server is self-signed, and certificates are verified.
  expect(await send(secured, 'a-password')).toMatchObject({
    ok: false,
    error: expect.stringMatching(/certificate/i),
  });
  const clear = await mailServer({
    authOptional: false,
    disabledCommands: ['STARTTLS'],
    allowInsecureAuth: true,
  });
  expect(await send(mail(clear.port, { user: 'svc' }), 'a-password')).toMatchObject({ ok: true });
  const refused = await send(mail(clear.port, { user: 'svc' }), 'a-wrong-password');
  expect(refused).toMatchObject({ ok: false, status: 535 });
  expect(refused.error).not.toContain('a-wrong-password');
  expect([mails.length, clear.mails.length]).toEqual([0, 1]);
});

test('STARTTLS is required where it is configured', async () => {
  const { port, mails } = await mailServer({ disabledCommands: ['STARTTLS'] });
  expect((await send(mail(port, { security: 'starttls' }), null)).ok).toBe(false);
  expect(mails).toEqual([]);
});

test('a mail server that refuses recipients or hangs is a failure', async () => {
  const { port } = await mailServer({
    disabledCommands: ['STARTTLS'],
    onRcptTo: (_address, _session, done) =>
      done(Object.assign(new Error('No such user'), { responseCode: 550 })),
  });
  expect(await send(mail(port), null)).toMatchObject({ ok: false, status: 550 });
  const silent = createServer(() => {});
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void silent.close());
  const hanging = mail((silent.address() as { port: number }).port);
  expect(await send(hanging, null, { timeoutMs: 200 })).toMatchObject({ ok: false, status: null });
});

test('channels of tenants cannot reach private addresses', async () => {
  const { port, mails } = await mailServer();
  const receiver = await startReceiver();
  const namespaceId = 'acme';
  const refused = { ok: false, error: expect.stringContaining('are refused') };
  expect(await send(mail(port), null, { namespaceId })).toMatchObject(refused);
  expect(await send(mail(port, { host: 'localhost' }), null, { namespaceId })).toMatchObject(refused);
  expect(await send({ type: 'slack' }, receiver.url, { namespaceId })).toMatchObject(refused);
  expect(await send({ type: 'pagerduty', url: receiver.url }, 'key', { namespaceId })).toMatchObject(refused);
  expect([mails.length, receiver.received.length]).toEqual([0, 0]);
});

test('a message to Slack has blocks and a text, and names cannot mention people or fake links', async () => {
  const receiver = await startReceiver();
  expect(await send({ type: 'slack' }, `${receiver.url}/services/T0/B0/token`)).toMatchObject({ ok: true });
  const { url, body } = receiver.received[0]!;
  expect(url).toBe('/services/T0/B0/token');
  const message = JSON.parse(body.toString());
  expect(message.text).toContain('&lt;!channel&gt;');
  const [{ blocks }] = message.attachments;
  expect(blocks[0].text).toMatchObject({ type: 'plain_text' });
  expect(blocks[1].text.text).toContain('<https://svc.example/studio/runs/1|');
  expect(blocks[1].text.text).not.toMatch(/<!channel>|<https:\/\/evil/);
  expect(mrkdwn('*a* `b`', 50)).not.toMatch(/^\*a\*/);
  receiver.answer = () => ({ status: 404, body: 'no_service' });
  const failed = await send({ type: 'slack' }, `${receiver.url}/services/T0/B0/token`);
  expect(failed).toMatchObject({ ok: false, status: 404, error: 'The receiver answered 404: no_service' });
});

test('PagerDuty gets a trigger and a resolve with one dedup key', async () => {
  const receiver = await startReceiver();
  receiver.answer = () => ({ status: 202, body: '{"status":"success"}' });
  const settings = { type: 'pagerduty' as const, url: `${receiver.url}/v2/enqueue` };
  expect(await send(settings, 'routing-key')).toMatchObject({ ok: true, status: 202 });
  await send(settings, 'routing-key', { change: { reason: 'resolved', firing: 0 } });
  const [trigger, resolve] = receiver.received.map(({ body }) => JSON.parse(body.toString()));
  expect(trigger).toMatchObject({
    ...{ routing_key: 'routing-key', event_action: 'trigger', dedup_key: 'incident_1' },
    payload: { severity: 'critical', source: '1', class: 'run.failed' },
    links: [{ href: 'https://svc.example/studio/runs/1' }, { href: 'https://svc.example/studio/runs/2' }],
  });
  expect(resolve).toMatchObject({ event_action: 'resolve', dedup_key: 'incident_1' });
  receiver.answer = () => ({ status: 400, body: '{"message":"bad routing-key"}' });
  const refused = await send(settings, 'routing-key');
  expect(refused).toMatchObject({ ok: false, isFinal: true });
  expect(refused.error).not.toContain('routing-key');
});

test('an error never contains the secret, whatever its form', () => {
  const secret = 'https://hooks.slack.com/services/T0/B0/tok en';
  for (const form of [
    secret,
    encodeURIComponent(secret),
    Buffer.from(secret).toString('base64'),
    '/services/T0/B0/tok%20en',
  ])
    expect(safeText(`failed: ${form}`, secret)).toMatch(/^failed: .*\*\*\*/);
});
