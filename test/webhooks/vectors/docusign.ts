import type { Vectors } from './vector.ts';

const source =
  "Made once with signPayload('sha256Verifier') of @redwoodjs/api@8.9.0 and the template of webhookProviderConfigs.docusign in @trigger.dev/core@4.8.3, a third party's description, and recorded";
const secret = 'docusign_example_connect_key';
// RedwoodJS writes hex. The template asks for base64, so the bytes were encoded again.
const signature = 'D8Bnsp7QMKkuC2a+rd8SWdkxiupDglk4KF9BSTStsgw=';
/** Signature of the same body with the secret `docusign_other_connect_key`, made and recorded in the same way. */
const otherSignature = 'JvnZi7WGAujapMpAikW8jEFOVyu2hV2EIeTSkQO/bos=';
const type = { 'content-type': 'application/json; charset=utf-8' };
const body =
  '{"event":"envelope-completed","apiVersion":"v2.1","uri":"/restapi/v2.1/accounts/b123a4e6-094f-43aa-b2d9-30076d0af3c7/envelopes/6b0cff6d-1def-40c3-9684-1587c8fcaa2c","retryCount":0,"configurationId":123456,"generatedDateTime":"2024-02-13T14:34:42.2740396Z","data":{"accountId":"b123a4e6-094f-43aa-b2d9-30076d0af3c7","userId":"861d2a78-7e55-42a1-ba7f-7501cc1a0d28","envelopeId":"6b0cff6d-1def-40c3-9684-1587c8fcaa2c"}}';

export const vectors: Vectors = async () => [
  {
    provider: 'docusign',
    source,
    secret,
    request: { headers: { ...type, 'x-docusign-signature-1': signature }, body },
  },
  {
    provider: 'docusign',
    source: `${source}; as the second header, after the signature of another Connect key`,
    secret,
    request: {
      headers: {
        ...type,
        'x-docusign-signature-1': otherSignature,
        'x-docusign-signature-2': signature,
      },
      body,
    },
  },
];
