import { grafana } from '../../../src/webhooks/providers/grafana.ts';
import type { Vectors } from './vector.ts';

const { headers, body } = grafana.sample;

/** Output of Grafana's own signer, recorded once, because it is a Go library. */
export const vectors: Vectors = async () => [
  {
    provider: 'grafana',
    source:
      'https://github.com/grafana/alerting/blob/783ce041/http/hmac.go HMACRoundTripper.sign (recorded output)',
    secret: 'test-secret',
    at: 1_763_900_000_000,
    request: {
      headers: {
        ...headers,
        'x-grafana-alerting-signature': 'cb75c40c822b20128fe6c66de1aaab66fcb2eb455c58a8e6e438d8dd0a21238e',
        'x-grafana-alerting-signature-timestamp': '1763900000',
      },
      body,
    },
  },
];
