import type { Vectors } from './vector.ts';

// Airtable publishes no signature. The vector is from the tests of pyairtable, a community client.
export const vectors: Vectors = async () => [
  {
    provider: 'airtable',
    source:
      'https://github.com/gtalarico/pyairtable/blob/25f31b0f4ab95d3e23ab37a645483ac38c8126ca/tests/test_models_webhook.py',
    secret: 'c2VjcmV0LWtleQ==',
    request: {
      headers: {
        'content-type': 'application/json',
        'x-airtable-content-mac':
          'hmac-sha256=e26da696a90933647bddc83995c3e1e3bb1c3d8ce1ff61cb7469767d50b2b2d4',
      },
      body: '{"base": {"id": "app00000000000000"}, "webhook": {"id": "ach00000000000000"}, "timestamp": "2022-02-01T21:25:05.663Z"}',
    },
  },
];
