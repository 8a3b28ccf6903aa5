import type { SignatureFault } from '../../../../../webhooks/schemes/index.ts';

/** Hints for the faults whose cause is known without trying common mistakes. */
export const HINTS: Record<Exclude<SignatureFault, 'mismatch' | 'timestamp_outside_tolerance'>, string> = {
  unprovisioned: 'There is no secret: create one with `svc webhooks provision`, or stop the sender.',
  address_not_allowed:
    'The client address is not in `ipAllow`. Behind a proxy, list the proxy in gateway.trustedProxies, so that the address is that of the sender.',
  header_missing: 'The sender does not send the authentication header, or a proxy drops it.',
  header_repeated: 'The header was sent more than once: a proxy may add its own.',
  query_missing:
    'The URL does not contain the token or signature: enter the whole URL that `svc webhooks provision` printed at the sender.',
  query_repeated: 'The query parameter was sent more than once.',
  field_missing: 'The body does not contain the field with the token, the signature or a signed value.',
  field_repeated: 'The body contains the field more than once, so its valid value is unclear.',
  prefix_missing:
    'The header does not start with the declared prefix: compare `prefix` or the provider with what the sender sends.',
  encoding: 'The signature does not have the declared encoding: lower-case hex, or base64 with padding.',
  body_not_form:
    'The signature covers the fields of a form, and the body is no form: the sender must send application/x-www-form-urlencoded.',
  timestamp_malformed: 'The signed timestamp is missing or does not have the declared unit.',
  key_format:
    'The provisioned key does not have the declared format: provision the public key of the sender again.',
  token_malformed: 'The token is no signed JSON Web Token.',
  token_algorithm:
    'The token is signed with an algorithm that the declaration does not list in `algorithms`.',
  token_claim:
    'A claim of the token (issuer, audience, validity or a declared claim) is missing or has another value: compare it with the declaration.',
  token_expired: 'The token has expired: check the clocks, or whether an old delivery was sent again.',
  body_digest: 'The digest in the token is that of another body: the body was changed after it was signed.',
  validator_refused: "The plugin's validator rejected it; its log lines have this delivery's request id.",
};

export const WRONG_SECRET =
  'The signature was made with another secret, or over another body: configure the secret at the sender again.';
export const WRONG_KEY =
  "The signature was made with another private key, or over other bytes: provision the sender's current public key.";
