import type { Provider } from './provider.ts';

export const zoom: Provider = {
  id: 'zoom',
  name: 'Zoom',
  sources: [
    'https://developers.zoom.us/docs/api/webhooks/',
    'https://developers.zoom.us/changelog/platform/webhook-url-validation/',
  ],
  checkedOn: '2026-11-23',
  auth: [
    {
      type: 'signature',
      algorithm: 'hmac-sha256',
      signature: { header: 'x-zm-signature', prefix: 'v0=', encoding: 'hex', format: 'plain' },
      signed: 'v0:{timestamp}:{body}',
      timestamp: { header: 'x-zm-request-timestamp', unit: 's', toleranceSeconds: 300 },
      secret: { encoding: 'text', prefix: '' },
    },
  ],
  secretFrom: 'sender',
  secretHelp: 'Copy the secret token of Features > Access in the Zoom App Marketplace.',
  protects: { body: true, url: false, time: true, sender: true },
  eventType: { field: 'event' },
  events: [
    'meeting.created',
    'meeting.updated',
    'meeting.deleted',
    'meeting.started',
    'meeting.ended',
    'meeting.participant_joined',
    'meeting.participant_left',
    'meeting.registration_created',
    'meeting.summary_completed',
    'recording.started',
    'recording.stopped',
    'recording.completed',
    'recording.transcript_completed',
    'webinar.created',
    'webinar.started',
    'webinar.ended',
    'user.created',
    'user.updated',
    'user.deactivated',
    'phone.callee_answered',
    'phone.recording_completed',
    'app_deauthorized',
    'endpoint.url_validation',
  ],
  handshakes: [
    // The reply is an HMAC with the key that signs deliveries. Without authentication, a third party could have the
    // gateway sign the text `v0:<time>:<body>` of a forged delivery.
    {
      method: 'POST',
      when: [{ at: { field: 'event' }, equals: 'endpoint.url_validation' }],
      isAuthenticated: true,
      reply: {
        status: 200,
        headers: {},
        json: {
          plainToken: { from: { field: 'payload.plainToken' } },
          encryptedToken: { hmac: { of: { field: 'payload.plainToken' }, encoding: 'hex', prefix: '' } },
        },
      },
    },
  ],
  accepted: { status: 200, body: '' },
  ackAfterMs: 2500,
  pitfalls: [
    'The secret is the secret token. The verification token of old apps does not work any more.',
    'Provision the secret before you press Validate: Zoom signs the validation too.',
    'Zoom validates the URL again every 72 hours, and stops after repeated failures.',
    'Deliveries have no id: use the uuid of the meeting with the event for idempotency.',
  ],
  sample: {
    headers: { 'content-type': 'application/json; charset=utf-8', 'user-agent': 'Zoom Marketplace/1.0a' },
    body: '{"event":"meeting.started","event_ts":1626230691572,"payload":{"account_id":"AAAAAABBBB","object":{"id":"1234567890","uuid":"4444AAAiAAAAAiAiAiiAii==","host_id":"x1yCzABCDEfg23HiJKl4mN","topic":"My Meeting","type":2}}}',
  },
};
