import { createServer } from 'node:net';
import { Webhook } from 'standardwebhooks';
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
import { startPagerduty, startSlack } from '../../support/alert-receivers.ts';
import { selfSigned } from '../../support/certificates.ts';
import { TEST_KEYS } from '../../support/daemon.ts';
import { MAIL_PASSWORD, type Mail, startMailServer } from '../../support/mail-server.ts';
import { freePort } from '../../support/ports.ts';
import { startReceiver } from '../../support/source-senders.ts';

const ROUTING_KEY = 'r'.repeat(32);
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

const mail = (port: number, change: object = {}): AlertChannelSettings => ({
  ...{ type: 'email', host: '127.0.0.1', port, security: 'none', ca: null, user: null },
  ...{ from: 'svc@example.com', to: ['ops@example.com', 'dev@example.com'] },
  ...change,
});

test('a mail has one subject line, its recipients, a link and an id that retries keep', async () => {
  const { port, mails } = await startMailServer({ disabledCommands: ['STARTTLS'] });
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

test.each(['starttls', 'tls'] as const)(
  'a mail server with %s is used with a private authority, and refused without',
  async (security) => {
    const [own, foreign] = [await selfSigned(10), await selfSigned(10)];
    const { key, cert } = own;
    const { port, mails } = await startMailServer({
      ...{ authOptional: false, secure: security === 'tls', key, cert },
    });
    const secured = (ca: string | null, change: object = {}) =>
      mail(port, { security, user: 'svc', host: 'localhost', ca, ...change });
    for (const ca of [null, foreign.cert])
      expect(await send(secured(ca), MAIL_PASSWORD)).toMatchObject({
        ok: false,
        error: expect.stringMatching(/certificate/i),
      });
    expect(mails).toEqual([]);
    expect(await send(secured(foreign.cert + cert), MAIL_PASSWORD)).toMatchObject({ ok: true, status: 250 });
    // The certificate also names the address.
    expect(await send(secured(cert, { host: '127.0.0.1' }), MAIL_PASSWORD)).toMatchObject({ ok: true });
    expect(mails.map(({ secure }) => secure)).toEqual([true, true]);
  },
);

test('a certificate for another name is refused, although its authority is trusted', async () => {
  const { key, cert } = await selfSigned(10, 'other.example');
  const { port, mails } = await startMailServer({ secure: true, key, cert });
  const settings = mail(port, { security: 'tls', host: 'localhost', ca: cert });
  expect(await send(settings, null)).toMatchObject({ ok: false, error: expect.stringMatching(/altnames/i) });
  expect(mails).toEqual([]);
});

test('a user is authenticated, and a wrong password is not repeated in the error', async () => {
  const { port, mails } = await startMailServer({
    ...{ authOptional: false, disabledCommands: ['STARTTLS'], allowInsecureAuth: true },
  });
  expect(await send(mail(port, { user: 'svc' }), MAIL_PASSWORD)).toMatchObject({ ok: true });
  const refused = await send(mail(port, { user: 'svc' }), 'a-wrong-password');
  expect(refused).toMatchObject({ ok: false, status: 535 });
  expect(refused.error).not.toContain('a-wrong-password');
  expect(mails).toHaveLength(1);
});

test('STARTTLS is required where it is configured', async () => {
  const { port, mails } = await startMailServer({ disabledCommands: ['STARTTLS'] });
  expect((await send(mail(port, { security: 'starttls' }), null)).ok).toBe(false);
  expect(mails).toEqual([]);
});

test('refused recipients are a failure, and the others get the mail', async () => {
  let refuses = (_: string): boolean => true;
  const { port, mails } = await startMailServer({
    disabledCommands: ['STARTTLS'],
    onRcptTo: ({ address }, _session, done) =>
      refuses(address) ? done(Object.assign(new Error('No such user'), { responseCode: 550 })) : done(),
  });
  expect(await send(mail(port), null)).toMatchObject({ ok: false, status: 550 });
  expect(mails).toEqual([]);
  refuses = (address) => address === 'dev@example.com';
  expect(await send(mail(port), null)).toMatchObject({
    ...{ ok: false, isFinal: true, error: 'The mail server refused dev@example.com.' },
  });
  expect(mails.map(({ to }) => to)).toEqual([['ops@example.com']]);
});

test.each([
  ['accepts and is silent', '', ''],
  ['greets and is silent', '220 mail.example\r\n', ''],
  ['answers slowly without an end', '220 mail.example\r\n', '250-SIZE 1000\r\n'],
])('a mail server that %s is given up after a time', async (_, greeting, slow) => {
  // The server does not end the connection either, and finds out by a write that the client has.
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const repeat = (text: string) => {
      const timer = setInterval(() => socket.write(text), 20);
      socket.once('close', () => clearInterval(timer));
    };
    socket.on('error', () => {}).resume();
    socket.write(greeting);
    if (slow !== '') repeat(slow);
    socket.on('end', () => repeat('250 OK\r\n'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  const sent = await send(mail(port), null, { timeoutMs: 200 });
  expect(sent).toMatchObject({ ok: false, status: null });
  if (slow !== '') expect(sent.error).toContain(`${port} did not take the message within 0.4 s.`);
  // Its connection is closed too.
  const connections = () =>
    new Promise((resolve) => server.getConnections((_error, count) => resolve(count)));
  await expect.poll(connections, { timeout: 3000 }).toBe(0);
});

test('a mail server that does not run is a failure', async () => {
  const refused = await send(mail(await freePort()), null);
  expect(refused).toMatchObject({ ok: false, error: expect.stringContaining('ECONNREFUSED') });
});

test('channels of tenants cannot reach private addresses', async () => {
  const { port, mails } = await startMailServer();
  const receiver = await startReceiver();
  const namespaceId = 'acme';
  const refused = { ok: false, error: expect.stringContaining('are refused') };
  expect(await send(mail(port), null, { namespaceId })).toMatchObject(refused);
  expect(await send(mail(port, { host: 'localhost' }), null, { namespaceId })).toMatchObject(refused);
  expect(await send({ type: 'slack' }, receiver.url, { namespaceId })).toMatchObject(refused);
  expect(await send({ type: 'pagerduty', url: receiver.url }, 'key', { namespaceId })).toMatchObject(refused);
  expect([mails.length, receiver.received.length]).toEqual([0, 0]);
});

test('a message to Slack fits its format, and names cannot mention people or fake links', async () => {
  const slack = await startSlack();
  expect(await send({ type: 'slack' }, slack.hook)).toMatchObject({ ok: true, status: 200 });
  const [message] = slack.messages;
  expect(message!.text).toContain('&lt;!channel&gt;');
  const [{ blocks } = { blocks: [] }] = message!.attachments;
  expect(blocks[0]).toMatchObject({ type: 'header' });
  const text = JSON.stringify(blocks[1]);
  expect(text).toContain('<https://svc.example/studio/runs/1|');
  expect(text).not.toMatch(/<!channel>|<https:\/\/evil/);
  expect(mrkdwn('*a* `b`', 50)).not.toMatch(/^\*a\*/);
  const failed = await send({ type: 'slack' }, `${slack.url}/services/T0/B0/another`);
  expect(failed).toMatchObject({ ok: false, status: 404, error: 'The receiver answered 404: no_service' });
});

test.each(['firing', 'repeat', 'resolved'] as const)(
  'messages of the kind %s with many long alerts fit the limits of Slack and PagerDuty',
  async (reason) => {
    const [slack, pagerduty] = [await startSlack(), await startPagerduty(ROUTING_KEY)];
    const long = '<&>*'.repeat(2000);
    const alerts = Array.from({ length: 20 }, (_, n) => ({
      ...NOTIFICATION.alerts[0]!,
      ...{ id: `alert_${n}`, title: `${n} ${long}`, message: long },
    }));
    const change = { reason, alerts, firing: reason === 'resolved' ? 0 : 20, total: 500, uncounted: 7 };
    expect(await send({ type: 'slack' }, slack.hook, { change })).toMatchObject({ ok: true });
    expect(JSON.stringify(slack.messages)).toContain('487 more alerts are not listed.');
    const settings = { type: 'pagerduty' as const, url: `${pagerduty.url}/v2/enqueue` };
    expect(await send(settings, ROUTING_KEY, { change })).toMatchObject({ ok: true, status: 202 });
  },
);

test('PagerDuty opens one incident, and resolves it when the last alert has ended', async () => {
  const pagerduty = await startPagerduty(ROUTING_KEY);
  const settings = { type: 'pagerduty' as const, url: `${pagerduty.url}/v2/enqueue` };
  const sendAs = (change: Partial<Notification>, key = ROUTING_KEY) => send(settings, key, { change });
  expect(await sendAs({})).toMatchObject({ ok: true, status: 202 });
  expect(pagerduty.incidents).toMatchObject([
    {
      ...{ key: 'incident_1', status: 'triggered', summary: expect.stringContaining('A run of ship Bcc') },
      links: ['https://svc.example/studio/runs/1', 'https://svc.example/studio/runs/2'],
    },
  ]);
  await sendAs({ reason: 'repeat' });
  // One of two alerts has ended, which is no event of the incident.
  expect(await sendAs({ reason: 'resolved', firing: 1 })).toMatchObject({ ok: true });
  expect(pagerduty.incidents).toMatchObject([{ status: 'triggered', triggers: 2 }]);
  await sendAs({ reason: 'resolved', firing: 0 });
  expect(pagerduty.incidents).toMatchObject([{ status: 'resolved', triggers: 2 }]);
  const refused = await sendAs({}, 'another-key-of-thirty-two-bytes!');
  expect(refused).toMatchObject({ ok: false, status: 400, isFinal: true });
  expect(refused.error).not.toContain('another-key');
  pagerduty.answer = () => ({ status: 429, body: '{"status":"throttle exceeded"}' });
  expect(await sendAs({})).toMatchObject({ ok: false, status: 429, isFinal: false });
});

test('an outgoing webhook is signed, and 410 ends the attempts', async () => {
  const receiver = await startReceiver();
  const secret = `whsec_${Buffer.alloc(32, 3).toString('base64')}`;
  const settings = { type: 'webhook' as const, url: `${receiver.url}/in` };
  expect(await send(settings, secret)).toMatchObject({ ok: true, status: 200 });
  const { headers, body } = receiver.received[0]!;
  const verified = new Webhook(secret).verify(body.toString(), headers as Record<string, string>);
  expect(verified).toMatchObject({
    type: 'alert.firing',
    data: { rule: 'runs', alerts: [{ link: 'https://svc.example/studio/runs/1' }, {}] },
  });
  expect(headers['webhook-id']).toBe('ntf_1');
  receiver.answer = () => ({ status: 410 });
  expect(await send(settings, secret)).toMatchObject({ ok: false, status: 410, isFinal: true });
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
