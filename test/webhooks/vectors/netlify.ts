import type { Vectors } from './vector.ts';

// The claim sha256 is the digest that Netlify documents. The time of receipt is the claim iat.
export const vectors: Vectors = async () => [
  {
    provider: 'netlify',
    source:
      "Made once with signPayload('jwtVerifier') of @redwoodjs/api@8.9.0 and recorded; RedwoodJS, a third party, bases this verifier on the one of Netlify",
    secret: 'netlify_example_jws_secret',
    at: Date.UTC(2026, 10, 23, 22, 57, 49),
    request: {
      headers: {
        'content-type': 'application/json',
        'x-netlify-event': 'deploy_created',
        'x-webhook-signature':
          'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzaGEyNTYiOiI5NGZkMTEyOWMxYTQyM2JkNTE3OWY5OGRhZDhhMjgzZTA2ZGUxMTA5NTZlYmYzYWI5NmQ4YjRkZjZiY2E1NzJkIiwiaWF0IjoxNzk1NDc0NjY5LCJpc3MiOiJuZXRsaWZ5In0.KpbGLY5WCo7UzgtSvgPHFZrSUTkenEBTC89XV5DmzGY',
      },
      body: '{"id":"5ebc34bf4fea0b01f02efa3a","site_id":"fa4dd95a-994e-4f89-8a7a-2d9e9fc36a32","state":"ready","name":"example","url":"https://example.netlify.app","branch":"main","context":"production"}',
    },
  },
];
