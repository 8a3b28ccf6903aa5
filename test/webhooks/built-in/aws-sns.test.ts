import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { confirmationUrlOf, verifyAwsSns } from '../../../src/webhooks/built-in/aws-sns.ts';
import { awsSns } from '../../../src/webhooks/providers/aws-sns.ts';
import { tempDir } from '../../support/daemon.ts';
import { signedRequest } from '../../support/signed-request.ts';
import { CERTIFICATE, CERTIFICATE_URL, MESSAGES, TOPIC_ARN } from '../support/aws-sns-messages.ts';

const AT = Date.parse('2026-03-06T20:05:00Z');
const NOTIFICATION = MESSAGES['test-notification-with-subject.json'];
const CONFIRMATION = MESSAGES['test-subscription-confirmation.json'];

interface Given {
  topicArn?: string;
  nowMs?: number;
  pem?: string;
}

/** Verifies a message and lists the URLs that the check fetched. */
async function verified(
  message: unknown,
  { topicArn = TOPIC_ARN, nowMs = AT, pem = CERTIFICATE }: Given = {},
) {
  const fetched: string[] = [];
  const body = Buffer.from(typeof message === 'string' ? message : JSON.stringify(message));
  const fetchText = (url: string) => {
    fetched.push(url);
    return Promise.resolve(pem);
  };
  const verdict = await verifyAwsSns(signedRequest({ body }), topicArn, { nowMs, fetchText });
  return { verdict, fetched };
}

describe.each(Object.entries(MESSAGES))('%s', (_file, message) => {
  test('is accepted with the certificate that it names', async () => {
    expect(await verified(message)).toEqual({ verdict: true, fetched: [CERTIFICATE_URL] });
  });

  const names = awsSns.protectedFields!.filter((name) => name in message);
  test.each(names)('is refused with another %s', async (name) => {
    const value = (message as Record<string, string>)[name]!;
    const { verdict } = await verified({ ...message, [name]: `${value}x` });
    expect(verdict).not.toBe(true);
  });

  test.each(names)('is refused with %s twice', async (name) => {
    const text = `{${JSON.stringify(name)}:"first",${JSON.stringify(message).slice(1)}`;
    expect((await verified(text)).verdict).toBe('field_repeated');
  });

  test('is refused for another topic before its certificate is fetched', async () => {
    expect(await verified(message, { topicArn: `${TOPIC_ARN}-2` })).toEqual({ verdict: false, fetched: [] });
  });
});

test('a subject that the sender did not sign is refused', async () => {
  const message = { ...MESSAGES['test-notification-signature-v2.json'], Subject: 'Added' };
  expect((await verified(message)).verdict).toBe(false);
});

test.each([
  ['an unknown type', { Type: 'Other' }],
  ['an unknown signature version', { SignatureVersion: '3' }],
  ['a signature that is not base64', { Signature: `${NOTIFICATION.Signature}!` }],
  ['a message id with a line feed', { MessageId: `${NOTIFICATION.MessageId}\nSubject\nAdded` }],
  ['a subject with a line feed', { Subject: `Added\nMessageId\n${NOTIFICATION.MessageId}` }],
  ['no certificate', { SigningCertURL: undefined }],
])('a message with %s is refused before a fetch', async (_name, change) => {
  expect(await verified({ ...NOTIFICATION, ...change })).toEqual({ verdict: 'field_missing', fetched: [] });
});

test.each(['', 'null', '[]', '"text"', '{'])('the body %j is refused', async (body) => {
  expect((await verified(body)).verdict).toBe('field_missing');
});

const FILE = '/SimpleNotificationService-7506a1e35b36ef5a444dd1a8e7cc3ed8.pem';
test.each([
  `http://sns.us-west-2.amazonaws.com${FILE}`,
  `https://sns.us-east-1.amazonaws.com${FILE}`,
  `https://sns.us-west-2.amazonaws.com.cn${FILE}`,
  `https://sns.us-west-2.amazonaws.com.example.com${FILE}`,
  `https://example.com/sns.us-west-2.amazonaws.com${FILE}`,
  `https://s3.us-west-2.amazonaws.com${FILE}`,
  `https://sns.us-west-2.amazonaws.com:8443${FILE}`,
  `https://sns.us-west-2.amazonaws.com@example.com${FILE}`,
  `https://user@sns.us-west-2.amazonaws.com${FILE}`,
  `https://sns.us-west-2.amazonaws.com${FILE}?x=.pem`,
  `https://sns.us-west-2.amazonaws.com${FILE}#`,
  `https://sns.us-west-2.amazonaws.com${FILE}\n`,
  `https://sns.us-west-2.amazonaws.com/x/..${FILE}`,
  'https://sns.us-west-2.amazonaws.com/?Action=GetTopic.pem',
  'https://sns.us-west-2.amazonaws.com/other.pem',
  'file:///etc/ssl/cert.pem',
])('the certificate URL %j is not fetched', async (SigningCertURL) => {
  const found = await verified({ ...NOTIFICATION, SigningCertURL });
  expect(found).toEqual({ verdict: 'key_format', fetched: [] });
});

test.each([
  ['before', '2025-11-09T23:59:59Z', 'key_format'],
  ['at the start of', '2025-11-10T00:00:00Z', true],
  ['at the end of', '2026-10-14T23:59:59Z', true],
  ['after', '2026-10-15T00:00:00Z', 'key_format'],
])('a message received %s the validity of its certificate: %s -> %s', async (_when, time, verdict) => {
  expect((await verified(NOTIFICATION, { nowMs: Date.parse(time) })).verdict).toBe(verdict);
});

test.each([
  ['nothing', ''],
  ['HTML', '<html></html>'],
  ['two certificates', CERTIFICATE + CERTIFICATE],
  ['a broken certificate', CERTIFICATE.replace('MIIFxTCC', 'MIIFxTCA')],
])('a certificate file with %s is refused', async (_name, pem) => {
  expect((await verified(NOTIFICATION, { pem })).verdict).toBe('key_format');
});

test.each([
  ['another name', ['/CN=sns.example.com'], 'key_format'],
  ['a name of another region', ['/CN=sns.us-east-1.amazonaws.com'], 'key_format'],
  ['a wildcard name', ['/CN=*.amazonaws.com'], 'key_format'],
  ['a short key', ['/CN=sns.amazonaws.com', '-newkey', 'rsa:1024'], 'key_format'],
  [
    'the right to issue certificates',
    ['/CN=sns.amazonaws.com', '-addext', 'basicConstraints=critical,CA:TRUE'],
    'key_format',
  ],
  ['another key', ['/CN=sns.amazonaws.com'], false],
  ['a regional name', ['/CN=sns-signing.us-west-2.amazonaws.com'], false],
])('a certificate with %s does not verify the message', async (_name, [subject, ...options], verdict) => {
  const pem = await selfSigned(subject!, options);
  expect((await verified(NOTIFICATION, { pem, nowMs: Date.now() })).verdict).toBe(verdict);
});

async function selfSigned(subject: string, options: readonly string[]): Promise<string> {
  const folder = await tempDir();
  const files = ['-keyout', join(folder, 'key.pem'), '-out', join(folder, 'cert.pem')];
  const key = options.includes('-newkey') ? [] : ['-newkey', 'rsa:2048'];
  const leaf = options.includes('-addext') ? [] : ['-addext', 'basicConstraints=critical,CA:FALSE'];
  const all = [
    'req',
    '-x509',
    '-nodes',
    '-days',
    '2',
    '-subj',
    subject,
    ...key,
    ...leaf,
    ...options,
    ...files,
  ];
  execFileSync('openssl', all, { stdio: 'ignore' });
  return readFileSync(join(folder, 'cert.pem'), 'utf8');
}

test('a confirmation gives the URL that confirms its own subscription', () => {
  const { url } = confirmationUrlOf(CONFIRMATION);
  expect(new URL(url!).origin).toBe('https://sns.us-west-2.amazonaws.com');
  expect(Object.fromEntries(new URL(url!).searchParams)).toEqual({
    Action: 'ConfirmSubscription',
    TopicArn: TOPIC_ARN,
    Token: CONFIRMATION.Token,
  });
});

test.each([
  ['a notification', NOTIFICATION],
  // Its URL would undo the cancellation that it reports.
  ['the end of a subscription', MESSAGES['test-unsubscribe-confirmation.json']],
  ['no message', null],
])('%s confirms nothing', (_name, message) => {
  expect(confirmationUrlOf(message)).toEqual({ fault: 'not_a_confirmation' });
});

const { SubscribeURL } = CONFIRMATION;
test.each([
  SubscribeURL.replace('https:', 'http:'),
  SubscribeURL.replace('amazonaws.com', 'amazonaws.com.example.com'),
  SubscribeURL.replace('us-west-2.amazonaws', 'us-east-1.amazonaws'),
  SubscribeURL.replace('https://', 'https://user:password@'),
  SubscribeURL.replace('amazonaws.com/', 'amazonaws.com:8443/'),
  SubscribeURL.replace('amazonaws.com/', 'amazonaws.com/path'),
  SubscribeURL.replace('ConfirmSubscription', 'DeleteTopic'),
  SubscribeURL.replace('dongie', 'other'),
  SubscribeURL.replace('Token=23', 'Token=24'),
  `${SubscribeURL}&Action=DeleteTopic`,
  `${SubscribeURL}#fragment`,
  'http://169.254.169.254/latest/meta-data',
  'not a URL',
])('the URL %s of a confirmation is not fetched', (url) => {
  const fault = confirmationUrlOf({ ...CONFIRMATION, SubscribeURL: url });
  expect(fault).toEqual({ fault: 'url_not_allowed' });
});
