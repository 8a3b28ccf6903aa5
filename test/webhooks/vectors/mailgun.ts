import type { Vectors } from './vector.ts';

// The constants of Mailgun's test, in the envelope that its documentation shows.
export const vectors: Vectors = async () => [
  {
    provider: 'mailgun',
    source:
      'https://github.com/mailgun/mailgun-php/blob/5024827b4ba170d9547919c7cbcb56477659bdd0/tests/Api/WebhookTest.php',
    secret: 'key-3ax6xnjp29jd6fds4gc373sgvjxteol0',
    request: {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        signature: {
          timestamp: '1403645220',
          token: '5egbgr1vjgqxtrnp65xfznchgdccwh5d6i09vijqi3whgowmn6',
          signature: '9cfc5c41582e51246e73c88d34db3af0a3a2692a76fbab81492842f000256d33',
        },
        'event-data': { event: 'opened', timestamp: 1403645220.329574, id: 'DACSsAdVSeGpLid7TN03WA' },
      }),
    },
  },
];
