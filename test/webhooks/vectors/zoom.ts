import type { Vectors } from './vector.ts';

// The template states the signed text, the algorithm, the encoding and the headers.
export const vectors: Vectors = async () => [
  {
    provider: 'zoom',
    source:
      "Made once with signPayload('sha256Verifier') of @redwoodjs/api@8.9.0 and the template of webhookProviderConfigs.zoom in @trigger.dev/core@4.8.3, a third party's description, and recorded",
    secret: 'zoom_example_secret_token',
    at: Date.UTC(2026, 0, 1),
    request: {
      headers: {
        'content-type': 'application/json; charset=utf-8',
        'user-agent': 'Zoom Marketplace/1.0a',
        'x-zm-signature': 'v0=dfda64f82c7790ef8f521bf209b2db96debf539f53d73ad5f61a3f19f6c04304',
        'x-zm-request-timestamp': '1767225600',
      },
      body: '{"event":"meeting.started","event_ts":1626230691572,"payload":{"account_id":"AAAAAABBBB","object":{"id":"1234567890","uuid":"4444AAAiAAAAAiAiAiiAii==","host_id":"x1yCzABCDEfg23HiJKl4mN","topic":"My Meeting","type":2}}}',
    },
  },
];
