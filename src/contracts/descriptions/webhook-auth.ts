import { type Descriptions, under } from './describe.ts';

const place: Descriptions = {
  header: 'Name of the header.',
  query: 'Name of the query parameter.',
  field: 'Dot-path in the body.',
};

/** Descriptions of the keys of `auth`. */
export const WEBHOOK_AUTH: Descriptions = {
  '': 'How the sender authenticates.',
  type: '"secret", "hmac", "signature", "basic", "jwt", "provider" or "custom".',
  header: 'Header with the secret, the signature or the token.',
  algorithm: 'Algorithm of the signature.',
  prefix: 'Text before the signature or token, such as "sha256=".',
  encoding: 'Encoding of the signature.',
  validator: 'Function that verifies the request, as "<file>#<export>"; only {valid: true} is accepted.',
  provider: 'Sender with a documented signature scheme (docs/providers.md).',
  toleranceSeconds: 'Maximum age of a signed timestamp, past or future.',
  ipAllow: 'Addresses and CIDR ranges that may deliver. Default: all.',
  ...under('signature', {
    '': 'Place of the signature: one of header, query and field.',
    ...place,
    prefix: 'Text before the signature.',
    encoding: 'Encoding; "hex" is lower case only.',
    format: '"plain" is one signature; a list has items such as "t=1,v1=…".',
    'format.separator': 'Text between items.',
    'format.assign': 'Text between name and value of an item.',
    'format.key': 'Name of the items that are signatures.',
    alternatives: 'Further places of a signature; one signature must match.',
    ...under('alternatives.*', place),
  }),
  signed: 'Template of the signed bytes; docs/webhooks.md lists its placeholders.',
  ...under('timestamp', {
    '': 'Place of the signed time: one of header, query, field and param.',
    ...place,
    param: 'Name of an item in the list with the signature.',
    unit: 'Seconds, milliseconds or an ISO date.',
    toleranceSeconds: 'Maximum age, past or future.',
  }),
  ...under('id', { '': 'Place of {id}: one of header, query and field.', ...place }),
  ...under('secret', {
    '': 'Conversion of the secret to the key of the HMAC.',
    encoding: 'Encoding of the key in the secret.',
    prefix: 'Text before the key, which is removed.',
  }),
  key: 'Format of the public key, which is provisioned as the secret.',
  algorithms: 'Accepted algorithms of the token.',
  jwksUrl: "URL of the issuer's public keys.",
  issuer: 'Expected issuer, or several.',
  audience: 'Expected audience; "secret" is the provisioned secret.',
  claims: 'Claims with the value that each must have.',
  ...under('bodyDigest', {
    '': 'Claim with a digest of the body, so that the token protects the body.',
    claim: 'Name of the claim.',
    algorithm: 'Hash of the body.',
    encoding: 'Encoding of the digest.',
  }),
  requireExpiry: 'Whether a token without expiry is refused. Default: true.',
};
