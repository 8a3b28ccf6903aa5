import type { Provider } from './provider.ts';

export const slack: Provider = {
  id: 'slack',
  name: 'Slack',
  sources: [
    'https://docs.slack.dev/authentication/verifying-requests-from-slack',
    'https://docs.slack.dev/reference/events/url_verification',
  ],
  checkedOn: '2026-11-23',
  auth: [
    {
      type: 'signature',
      algorithm: 'hmac-sha256',
      signature: { header: 'x-slack-signature', prefix: 'v0=', encoding: 'hex', format: 'plain' },
      signed: 'v0:{timestamp}:{body}',
      timestamp: { header: 'x-slack-request-timestamp', unit: 's', toleranceSeconds: 300 },
      secret: { encoding: 'text', prefix: '' },
    },
  ],
  secretFrom: 'sender',
  secretHelp: 'Copy the signing secret under Basic Information > App Credentials.',
  protects: { body: true, url: false, time: true, sender: true },
  jsonField: 'payload',
  deliveryId: { field: 'event_id' },
  eventType: { field: 'event.type' },
  events: ['app_mention', 'message', 'reaction_added', 'team_join', 'app_home_opened'],
  handshakes: [
    {
      method: 'POST',
      when: [{ at: { field: 'type' }, equals: 'url_verification' }],
      isAuthenticated: false,
      reply: { status: 200, headers: {}, text: { from: { field: 'challenge' } } },
    },
  ],
  accepted: { status: 200, body: '' },
  ackAfterMs: 2500,
  pitfalls: [
    'Buttons, menus, modals and slash commands are sent as forms. They get 400 unless the webhook or source declares "body": "form".',
    'Slack sends an event again if the answer takes more than 3 seconds.',
  ],
  sample: {
    headers: { 'content-type': 'application/json' },
    body: '{"type":"event_callback","event_id":"Ev123ABC456","event":{"type":"app_mention","text":"<@U0LAN0Z89> hello"}}',
  },
};
