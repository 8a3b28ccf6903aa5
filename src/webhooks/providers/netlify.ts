import type { Provider } from './provider.ts';

export const netlify: Provider = {
  id: 'netlify',
  name: 'Netlify',
  sources: ['https://docs.netlify.com/deploy/deploy-notifications/#payload-signature'],
  checkedOn: '2026-11-23',
  auth: [
    {
      type: 'jwt',
      header: 'x-webhook-signature',
      prefix: '',
      algorithms: ['HS256'],
      issuer: 'netlify',
      claims: {},
      bodyDigest: { claim: 'sha256', algorithm: 'sha256', encoding: 'hex' },
      requireExpiry: false,
      toleranceSeconds: 60,
    },
  ],
  secretFrom: 'platform',
  secretHelp: 'Paste the secret as the JWS secret token of the HTTP POST notification.',
  protects: { body: true, url: false, time: false, sender: true },
  eventType: { header: 'x-netlify-event' },
  events: [
    'deploy_building',
    'deploy_created',
    'deploy_failed',
    'deploy_deleted',
    'deploy_locked',
    'deploy_unlocked',
    'deploy_request_pending',
    'deploy_request_accepted',
    'deploy_request_rejected',
    'submission_created',
  ],
  pitfalls: [
    'Netlify sends the event type in the header X-Netlify-Event, but does not document it.',
    'The JWS secret token is optional at Netlify. Deliveries without it are refused.',
    'The token has no time of issue, so an old delivery can be repeated.',
  ],
  sample: {
    headers: { 'content-type': 'application/json', 'x-netlify-event': 'deploy_created' },
    body:
      '{"id":"5ebc34bf4fea0b01f02efa3a","site_id":"fa4dd95a-994e-4f89-8a7a-2d9e9fc36a32","state":"ready","name":"example",' +
      '"url":"https://example.netlify.app","branch":"main","context":"production"}',
  },
};
