import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished, test } from 'vitest';
import {
  createAlertChannel,
  createEndpoint,
  getAlert,
  listAlertChannels,
  listAlertRules,
  listAlerts,
  listAudit,
  PlatformConfig,
  publishMessage,
  replayMessage,
  setSecret,
  testAlerts,
} from '../../../src/contracts/index.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import { minutes } from '../../../src/kit/time/duration.ts';
import { FAST, PATIENT, until } from '../../support/alert-platform.ts';
import { startPagerduty, startSlack } from '../../support/alert-receivers.ts';
import { selfSigned } from '../../support/certificates.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { leakForms } from '../../support/leak-forms.ts';
import { MAIL_PASSWORD, startMailServer } from '../../support/mail-server.ts';
import { startReceiver } from '../../support/source-senders.ts';
import { textsIn } from '../../support/texts-in.ts';

/** A reference of the config to a stored secret. */
const stored = (name: string) => `\${secret:${name}}`;
const PUBLIC_URL = 'https://svc.example';
const ROUTING_KEY = 'k'.repeat(32);
const HOOK_SECRET = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;

async function setUp() {
  const { key, cert } = await selfSigned(3650);
  const [slack, pagerduty, hook, mail, endpoint] = [
    await startSlack(),
    await startPagerduty(ROUTING_KEY),
    await startReceiver(),
    await startMailServer({ authOptional: false, key, cert }),
    await startReceiver(),
  ];
  const channels = {
    chat: { type: 'slack', url: stored('SLACK_URL') },
    pager: { type: 'pagerduty', url: `${pagerduty.url}/v2/enqueue`, routingKey: stored('PAGERDUTY_KEY') },
    hook: { type: 'webhook', url: hook.url, secret: stored('HOOK_SECRET') },
    mail: {
      ...{ type: 'email', host: 'localhost', port: mail.port, ca: cert, user: 'svc' },
      ...{ password: stored('SMTP_PASSWORD'), from: 'svc@example.com', to: ['ops@example.com'] },
    },
  };
  const rules = {
    failures: {
      kind: 'delivery.failed',
      channels: Object.keys(channels),
      severity: 'critical',
      groupWaitMs: 0,
    },
  };
  // Verification libraries compare timestamps with the time of the machine.
  const gateway = await startGateway({
    clock: manualClock(Date.now()),
    config: {
      ...{ auth: PATIENT, outgoing: { allowPrivateAddresses: true } },
      ...{ alerts: { ...FAST, channels, rules }, gateway: { publicUrl: PUBLIC_URL } },
    },
  });
  const setSecrets = async (values: Record<string, string>) => {
    for (const [name, value] of Object.entries(values))
      await gateway.call(setSecret, { params: { name } as never, body: { value } as never });
  };
  return { gateway, setSecrets, slack, pagerduty, hook, mail, endpoint };
}

const channelOf = async (gateway: TestGateway, name: string) =>
  (await gateway.call(listAlertChannels, { query: {} })).items.find((channel) => channel.name === name)!;

/** Publishes a message that the endpoint does not take. Returns its id. */
async function failMessage(
  gateway: TestGateway,
  endpoint: { url: string; answer: unknown },
): Promise<string> {
  endpoint.answer = () => ({ status: 500 });
  await gateway.call(createEndpoint, { body: { url: endpoint.url, types: ['x'], retrySchedule: [] } });
  return (await gateway.call(publishMessage, { body: { type: 'x', data: 1 } })).id;
}

test('channels of the config get an alert with a link and its end, with secrets that are read when it is sent', async () => {
  const { gateway, setSecrets, slack, pagerduty, hook, mail, endpoint } = await setUp();
  const secrets = {
    ...{ SLACK_URL: slack.hook, PAGERDUTY_KEY: ROUTING_KEY },
    ...{ HOOK_SECRET, SMTP_PASSWORD: MAIL_PASSWORD },
  };
  const { SLACK_URL, ...others } = secrets;
  await setSecrets(others);
  expect((await gateway.call(listAlertRules, { query: {} })).items).toMatchObject([
    { name: 'failures', namespaceId: '*', declared: true, faults: [] },
  ]);
  const id = await failMessage(gateway, endpoint);
  const link = `${PUBLIC_URL}/studio/messages/${id}`;
  const received = () => [
    slack.messages.length,
    pagerduty.incidents.length,
    hook.received.length,
    mail.mails.length,
  ];
  await until(gateway, received, [0, 1, 1, 1]);
  expect(pagerduty.incidents).toMatchObject([{ status: 'triggered', links: [link] }]);
  const { headers, body } = hook.received[0]!;
  const verified = new Webhook(HOOK_SECRET).verify(body.toString(), headers as Record<string, string>);
  expect(verified).toMatchObject({
    type: 'alert.firing',
    data: { severity: 'critical', alerts: [{ link }] },
  });
  expect(mail.mails[0]).toMatchObject({ to: ['ops@example.com'], secure: true });
  expect(mail.mails[0]!.text.replaceAll('=\r\n', '')).toContain(link);

  // The alert is kept, and sent as soon as its secret exists.
  const chat = await channelOf(gateway, 'chat');
  expect(chat).toMatchObject({ failing: true, pending: 1 });
  expect(chat.lastError).toBe(
    'The namespace default has no secret SLACK_URL. Set it with `svc secrets set SLACK_URL`.',
  );
  await setSecrets({ SLACK_URL: `${slack.url}/services/T0/B0/old-slack-token` });
  gateway.clock.advance(minutes(1));
  await until(
    gateway,
    async () => (await channelOf(gateway, 'chat')).lastError,
    'The receiver answered 404: no_service',
  );
  await setSecrets({ SLACK_URL });
  gateway.clock.advance(minutes(2));
  await until(gateway, received, [1, 1, 1, 1]);
  expect(JSON.stringify(slack.messages)).toContain(`<${link}|`);

  endpoint.answer = () => ({ status: 200 });
  await gateway.call(replayMessage, { params: { id }, body: {} });
  await until(gateway, received, [2, 1, 2, 2]);
  await until(gateway, () => pagerduty.incidents[0]!.status, 'resolved');
  expect(slack.messages[1]!.text).toMatch(/^Resolved: The endpoint /);
  expect(mail.mails[1]!.text).toMatch(/^Subject: Resolved: /m);
  expect(JSON.parse(hook.received[1]!.body.toString()).type).toBe('alert.resolved');
});

test('secrets of channels are in no answer, record, log or file, also if a receiver repeats them', async () => {
  const { gateway, setSecrets, slack, pagerduty, hook, endpoint } = await setUp();
  const secrets = {
    SLACK_URL: `${slack.url}/services/T0/B0/repeated-slack-token`,
    PAGERDUTY_KEY: 'p'.repeat(16) + 'q'.repeat(16),
    HOOK_SECRET: `whsec_${Buffer.alloc(32, 5).toString('base64')}`,
    SMTP_PASSWORD: 'a-wrong-mail-password',
  };
  await setSecrets(secrets);
  slack.answer = ({ url }) => ({ status: 500, body: `failed at ${url} and ${secrets.SLACK_URL}` });
  pagerduty.answer = ({ body }) => ({ status: 500, body: `refused ${body.toString().slice(0, 100)}` });
  hook.answer = () => ({ status: 500, body: `secret ${secrets.HOOK_SECRET}` });
  await failMessage(gateway, endpoint);
  const attempts = async () => {
    const [alert] = (await gateway.call(listAlerts, { query: {} })).items;
    if (!alert) return [];
    const { notifications } = await gateway.call(getAlert, { params: { id: alert.id } });
    return notifications.flatMap((notification) => notification.attempts);
  };
  await until(gateway, async () => (await attempts()).length >= 4, true);
  const { results } = await gateway.call(testAlerts, { body: { rule: 'failures' } });
  expect(results.map(({ ok }) => ok)).toEqual([false, false, false, false]);
  const texts = [
    ...(await textsIn(gateway.dataDir)),
    JSON.stringify([await attempts(), results, await gateway.call(listAlertChannels, { query: {} })]),
    JSON.stringify([gateway.logs.lines, await gateway.call(listAudit, { query: {} })]),
  ];
  const forms = Object.values(secrets).flatMap(leakForms);
  for (const form of ['repeated-slack-token', ...forms])
    expect(texts.filter((text) => text.includes(form))).toEqual([]);
});

test('a reference names an environment variable, or a secret by the rules of its name', () => {
  const parse = (url: string) =>
    PlatformConfig.safeParse({ alerts: { channels: { chat: { type: 'slack', url } } } }).success;
  for (const good of ['HOME', 'home', 'secret:SLACK_URL', `secret:${'A'.repeat(64)}`])
    expect(parse(`\${${good}}`)).toBe(true);
  for (const bad of [
    'secret:slack',
    'secret:_A',
    'secret:A.B',
    'secret:A-B',
    `secret:${'A'.repeat(65)}`,
    'secret:',
    'A B',
  ])
    expect(parse(`\${${bad}}`)).toBe(false);
  expect(parse('https://hooks.slack.com/services/T0/B0/x')).toBe(false);
});

test('a mail channel with a faulty authority is refused when it is created', async () => {
  const gateway = await startGateway();
  onTestFinished(() => gateway.close());
  const create = (ca: string) =>
    gateway.call(createAlertChannel, {
      body: {
        ...{ name: 'mail', type: 'email', host: 'mail.example', ca },
        ...{ from: 'a@example.com', to: ['b@example.com'] },
      },
    } as never);
  const pem = (text: string) => `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`;
  for (const faulty of ['/etc/ssl/cert.pem', pem('AAAA'), 'text'])
    await expect(create(faulty)).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
  const { cert } = await selfSigned(1);
  expect(await create(cert + cert)).toMatchObject({ settings: { ca: cert + cert } });
});
