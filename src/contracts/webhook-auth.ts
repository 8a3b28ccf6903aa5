import { z } from 'zod';
import { HandlerRef } from './handler-ref.ts';
import { LIMITS } from './limits.ts';
import { PROVIDER_IDS } from './provider-ids.ts';
import { jwtFaults, signatureFaults } from './signature-template.ts';

const Name = z.string().min(1).max(256);
const ToleranceSeconds = z.number().int().positive().max(3600);

/**
 * Place of a value in a request: a header, a query parameter, or a field of the parsed body (a dot path). Exactly one is
 * given.
 */
export const RequestPlace = z
  .strictObject({ header: Name.optional(), query: Name.optional(), field: Name.optional() })
  .refine((place) => Object.keys(place).length === 1, 'must name one of "header", "query" and "field"');
export type RequestPlace = z.infer<typeof RequestPlace>;

export interface IpAllowSchema extends z.ZodType<string[], string[]> {}
/** IP addresses and CIDR ranges from which deliveries are accepted. Checked in addition to the proof of the sender. */
export const IpAllow: IpAllowSchema = z
  .array(z.union([z.cidrv4(), z.cidrv6(), z.ipv4(), z.ipv6()]))
  .min(1)
  .max(1000);
const ipAllow = IpAllow.optional();

export const SignatureAlgorithm = z.enum([
  'hmac-sha1',
  'hmac-sha256',
  'hmac-sha384',
  'hmac-sha512',
  'ed25519',
  'ecdsa-p256-sha256',
  'rsa-sha1',
  'rsa-sha256',
]);
export type SignatureAlgorithm = z.infer<typeof SignatureAlgorithm>;

/** Text encoding of a signature. Hex is accepted in lower case only, unless the encoding is `hex-any-case`. */
export const SignatureEncoding = z.enum(['hex', 'hex-any-case', 'base64', 'base64url']);

/**
 * Layout of the value that contains the signature. `plain` is one signature after an optional prefix. A list consists of
 * `<key><assign><value>` items, of which those named `key` are signatures. The other items are parameters of the
 * template (`{param:<name>}`).
 */
export const SignatureFormat = z.union([
  z.literal('plain'),
  z.strictObject({
    separator: z.string().min(1).max(4).default(','),
    assign: z.string().min(1).max(4).default('='),
    key: Name,
  }),
]);

/**
 * Scheme of a signature. @spec docs/webhooks.md "Signatures"
 */
export const SignatureAuth = z
  .strictObject({
    type: z.literal('signature'),
    algorithm: SignatureAlgorithm,
    signature: z.strictObject({
      header: Name.optional(),
      query: Name.optional(),
      field: Name.optional(),
      prefix: z.string().max(64).default(''),
      encoding: SignatureEncoding.default('hex'),
      format: SignatureFormat.default('plain'),
      /** Further places of a signature. One of all signatures that a request has must match. */
      alternatives: z.array(RequestPlace).min(1).max(8).optional(),
    }),
    /**
     * Template of the signed bytes: `{body} {timestamp} {id} {method} {url} {path} {query} {sortedForm} {header:<name>}
     * {field:<path>} {param:<name>}`. `{{` and `}}` are literal braces.
     */
    signed: z.string().min(1).max(1024).default('{body}'),
    timestamp: z
      .strictObject({
        header: Name.optional(),
        query: Name.optional(),
        field: Name.optional(),
        /** Name of an item in a list that contains the signature, such as `t` in `t=1,v1=…`. */
        param: Name.optional(),
        unit: z.enum(['s', 'ms', 'iso']).default('s'),
        toleranceSeconds: ToleranceSeconds.default(LIMITS.webhookToleranceSeconds),
      })
      .optional(),
    /** Place of the value of `{id}`. */
    id: RequestPlace.optional(),
    /** Conversion of the secret's text to the bytes of the HMAC key. `prefix` is removed first, if present. */
    secret: z
      .strictObject({
        encoding: z.enum(['text', 'hex', 'base64']).default('text'),
        prefix: z.string().max(64).default(''),
      })
      .prefault({}),
    /**
     * Format of the public key of an asymmetric algorithm. The key is provisioned in place of the secret: `pem`, the
     * base64 of an SPKI structure, or the raw bytes of an Ed25519 key in hex or base64.
     */
    key: z.enum(['pem', 'spki-base64', 'raw-hex', 'raw-base64']).optional(),
    ipAllow,
  })
  .superRefine((auth, context) => {
    for (const { path, message } of signatureFaults(auth))
      context.addIssue({ code: 'custom', path, message });
  });
export type SignatureAuth = z.infer<typeof SignatureAuth>;

/** HTTP Basic authentication. The secret is `<user>:<password>`. */
export const BasicAuth = z.strictObject({ type: z.literal('basic'), ipAllow });
export type BasicAuth = z.infer<typeof BasicAuth>;

/** A JSON Web Token of the sender, signed with a key of `jwksUrl`, or by HMAC with the secret. */
export const JwtAuth = z
  .strictObject({
    type: z.literal('jwt'),
    header: Name.default('authorization'),
    prefix: z.string().max(64).default('Bearer '),
    algorithms: z
      .array(z.enum(['HS256', 'HS384', 'HS512', 'RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'EdDSA']))
      .min(1)
      .default(['RS256']),
    /** URL of the issuer's public keys. Required for algorithms other than `HS…`. HTTPS, except on loopback. */
    jwksUrl: z.url({ protocol: /^https?$/ }).optional(),
    issuer: z.union([Name, z.array(Name).min(1)]).optional(),
    /** Expected audience. `secret` means that the audience is the provisioned secret. */
    audience: z.string().min(1).max(1024).optional(),
    /** Claims with the value that they must have. */
    claims: z.record(Name, z.union([z.string(), z.number(), z.boolean()])).default({}),
    /** Claim with a digest of the body, which extends the protection of the token to the body. */
    bodyDigest: z
      .strictObject({
        claim: Name,
        algorithm: z.enum(['sha256', 'sha512']).default('sha256'),
        encoding: SignatureEncoding,
      })
      .optional(),
    toleranceSeconds: ToleranceSeconds.default(60),
    /** Whether a token without expiry time (`exp`) is refused. Default: true. */
    requireExpiry: z.boolean().optional(),
    ipAllow,
  })
  .superRefine((auth, context) => {
    for (const { path, message } of jwtFaults(auth)) context.addIssue({ code: 'custom', path, message });
  });
export type JwtAuth = z.infer<typeof JwtAuth>;

/** Method by which a webhook authenticates its sender. @spec Webhook declaration: WebhookAuthConfig */
export const WebhookAuthConfig = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('secret'), header: z.string().min(1), ipAllow }),
  z.strictObject({
    type: z.literal('hmac'),
    header: z.string().min(1),
    algorithm: z.literal('sha256').default('sha256'),
    prefix: z.string().default(''),
    encoding: z.enum(['hex', 'base64']).default('hex'),
    ipAllow,
  }),
  z.strictObject({ type: z.literal('custom'), validator: HandlerRef, ipAllow }),
  // The following variants extend the spec.
  SignatureAuth,
  BasicAuth,
  JwtAuth,
  z.strictObject({
    type: z.literal('provider'),
    provider: z.enum(PROVIDER_IDS),
    /**
     * Maximum difference between the gateway's clock and a signed timestamp, in either direction. Default: that of the
     * provider's entry in the catalogue.
     */
    toleranceSeconds: ToleranceSeconds.optional(),
    ipAllow,
  }),
]);
export type WebhookAuthConfig = z.infer<typeof WebhookAuthConfig>;
