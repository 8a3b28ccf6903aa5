import { bodySignature } from './body-signature.ts';
import type { Provider } from './provider.ts';

export const sentry: Provider = {
  id: 'sentry',
  name: 'Sentry',
  sources: [
    'https://docs.sentry.io/integrations/integration-platform/webhooks/',
    'https://github.com/getsentry/sentry/blob/master/src/sentry/sentry_apps/models/sentry_app.py',
  ],
  checkedOn: '2026-11-23',
  auth: [bodySignature({ header: 'sentry-hook-signature' })],
  secretFrom: 'sender',
  secretHelp: 'Copy the Client Secret of the integration under Settings > Developer Settings.',
  protects: { body: true, url: false, time: false, sender: true },
  deliveryId: { header: 'request-id' },
  eventType: { header: 'sentry-hook-resource' },
  events: [
    'installation',
    'event_alert',
    'issue',
    'metric_alert',
    'error',
    'comment',
    'seer',
    'size_analysis',
  ],
  ackAfterMs: 800,
  pitfalls: [
    'Sentry waits for one second. After 1,000 timeouts in 24 hours it unsubscribes the webhook.',
    'The header Sentry-Hook-Timestamp is not part of the signature.',
    'The event type names the resource. The field "action" says what happened to it.',
    'The older "WebHooks" plugin of a project signs nothing. Use an internal integration.',
  ],
  sample: {
    headers: {
      'content-type': 'application/json',
      'request-id': '3b0b7dcd2f4e4b1f9d3e1a6c5b8f7a90',
      'sentry-hook-resource': 'installation',
      'sentry-hook-timestamp': '1514764800',
    },
    body:
      '{"action":"created","installation":{"uuid":"7a485448-a9e2-4c85-8a3c-4f44175783c9"},"data":{"installation":' +
      '{"app":{"uuid":"64bf2cf4-37ca-4365-8dd3-6b6e56d741b8","slug":"app"},"organization":{"slug":"test"},' +
      '"uuid":"7a485448-a9e2-4c85-8a3c-4f44175783c9"}},"actor":{"type":"user","id":1,"name":"colleen"}}',
  },
};
