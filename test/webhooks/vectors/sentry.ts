import { sentry } from '../../../src/webhooks/providers/sentry.ts';
import type { Vectors } from './vector.ts';

const { headers, body } = sentry.sample;

/** Output of Sentry's own signer, recorded once, because it is part of a Python server. */
export const vectors: Vectors = async () => [
  {
    provider: 'sentry',
    source:
      'https://github.com/getsentry/sentry/blob/02119258/src/sentry/sentry_apps/models/sentry_app.py ' +
      'SentryApp.build_signature (recorded output)',
    secret: 'test-client-secret',
    request: {
      headers: {
        ...headers,
        'sentry-hook-signature': '7bea6ee2b691d365f61d86e8788f8da10529385a7281796cfb73c3f1456abfcf',
      },
      body,
    },
  },
];
