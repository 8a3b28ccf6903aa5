import type { Vectors } from './vector.ts';

// The body of HubSpot's test is not JSON, and its time is given in ms.
export const vectors: Vectors = async () => [
  {
    provider: 'hubspot',
    source:
      'https://github.com/HubSpot/hubspot-api-ruby/blob/39214e71b924260de274ef9dba41b8ae54c27327/spec/helpers/signature_spec.rb (also in hubspot-api-python, tests/spec/utils/test_signature.py)',
    secret: 'yyyyyyyy-yyyy-yyyy-yyyy-yyyyyyyyyyyy',
    at: 15_000_000,
    request: {
      method: 'POST',
      url: 'https://www.example.com/webhook_uri',
      headers: {
        'content-type': 'application/json',
        'x-hubspot-signature-v3': 'HPW73RUtKmcYoEDADG0s6MmGFWUzWJKAW07r8RDgcQw=',
        'x-hubspot-request-timestamp': '15000000',
      },
      body: "{'example_field':'example_value'}",
    },
  },
];
