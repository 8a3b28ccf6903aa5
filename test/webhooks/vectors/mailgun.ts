import type { Vectors } from './vector.ts';

const source =
  'https://github.com/mailgun/mailgun-php/blob/5024827b4ba170d9547919c7cbcb56477659bdd0/tests/Api/WebhookTest.php';
const secret = 'key-3ax6xnjp29jd6fds4gc373sgvjxteol0';
const signature = '9cfc5c41582e51246e73c88d34db3af0a3a2692a76fbab81492842f000256d33';
/** Signature of another delivery and key, from Mailgun's page on securing webhooks (see the entry's sample). */
const otherSignature = 'd2271d12299f6592d9d44cd9d250f0704e4674c30d79d07c47a66f95ce71cf55';
const headers = { 'content-type': 'application/json' };

/** Returns the constants of Mailgun's test, in the envelope that its documentation shows. */
const bodyWith = (signatures: object) =>
  JSON.stringify({
    signature: {
      timestamp: '1403645220',
      token: '5egbgr1vjgqxtrnp65xfznchgdccwh5d6i09vijqi3whgowmn6',
      ...signatures,
    },
    'event-data': { event: 'opened', timestamp: 1403645220.329574, id: 'DACSsAdVSeGpLid7TN03WA' },
  });

export const vectors: Vectors = async () => [
  { provider: 'mailgun', source, secret, request: { headers, body: bodyWith({ signature }) } },
  {
    provider: 'mailgun',
    source: `${source}; as the parent-signature, beside the signature of a subaccount`,
    secret,
    request: {
      headers,
      body: bodyWith({
        signature: otherSignature,
        'parent-signature': signature,
      }),
    },
  },
];
