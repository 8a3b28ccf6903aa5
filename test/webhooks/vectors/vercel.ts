import type { Vectors } from './vector.ts';

// RedwoodJS writes "sha1=" before the signature, which Vercel does not. It was removed.
export const vectors: Vectors = async () => [
  {
    provider: 'vercel',
    source:
      "Made once with signPayload('sha1Verifier') of @redwoodjs/api@8.9.0 and recorded; RedwoodJS, a third party, bases this verifier on the one of Vercel",
    secret: 'vercel_example_secret',
    request: {
      headers: {
        'content-type': 'application/json',
        'x-vercel-signature': 'f384a590a717fa16b39b271d79e7ded14deb7e89',
      },
      body: '{"id":"uev_oXp1wXxVCKqWzyvXYFFWnLCJ","type":"deployment.created","createdAt":1763900000000,"region":"sfo1","payload":{"team":{"id":"team_123"},"user":{"id":"user_123"},"deployment":{"id":"dpl_123","meta":{},"url":"example-123.vercel.app","name":"example"},"target":"production","project":{"id":"prj_123"},"plan":"pro"}}',
    },
  },
];
