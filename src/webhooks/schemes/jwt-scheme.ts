import { createHash } from 'node:crypto';
import {
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  jwtVerify,
  SignJWT,
} from 'jose';
import type { JwtAuth } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { BuiltInTools } from './built-in.ts';
import { encode } from './encoding.ts';
import { KeySets } from './key-sets.ts';
import { isMissing, type Place, placeOf } from './place.ts';
import type { CheckScheme, Draft, Signed } from './scheme.ts';
import type { SignatureFault, SignatureVerdict, SignedRequest } from './signed-request.ts';
import type { VerificationKey, VerificationKeys } from './verification-key.ts';

const MAX_TOKEN_CHARS = 16 * 1024;
const SAMPLE_LIFETIME_SECONDS = 300;

/** Keys of all issuers. Shared by all webhooks, so that each issuer's keys are fetched once. */
const keySets = new KeySets();

/** A JSON Web Token of the sender. */
export class JwtScheme implements CheckScheme {
  readonly kind = 'check';
  readonly auth: JwtAuth;
  readonly #place: Place;
  readonly #isSymmetric: boolean;

  constructor(auth: JwtAuth) {
    this.auth = auth;
    this.#place = placeOf({ header: auth.header });
    this.#isSymmetric = auth.algorithms.every((name) => name.startsWith('HS'));
    if (this.#isSymmetric) this.sign = (key, draft) => this.#sign(key, draft);
  }

  sign?: (key: VerificationKey, draft: Draft) => Promise<Signed>;

  isUsedBy(request: SignedRequest): boolean {
    return !isMissing(this.#place.read(request).fault);
  }

  async check(
    request: SignedRequest,
    keys: VerificationKeys,
    { nowMs }: BuiltInTools,
  ): Promise<SignatureVerdict> {
    const sent = this.#place.read(request);
    if (sent.text === undefined) return { valid: false, fault: sent.fault };
    const { prefix } = this.auth;
    if (sent.text.slice(0, prefix.length).toLowerCase() !== prefix.toLowerCase())
      return { valid: false, fault: 'prefix_missing' };
    const token = sent.text.slice(prefix.length).trim();
    if (token.length > MAX_TOKEN_CHARS) return { valid: false, fault: 'token_malformed' };
    let fault: SignatureFault = 'mismatch';
    for (const which of ['current', 'previous'] as const) {
      const key = keys[which];
      const found: SignatureFault | undefined = key ? await this.#faultOf(token, request, key, nowMs) : fault;
      if (found === undefined) return { valid: true, secret: which };
      if (which === 'current') fault = found;
    }
    return { valid: false, fault };
  }

  async #faultOf(
    token: string,
    request: SignedRequest,
    key: VerificationKey,
    nowMs: number,
  ): Promise<SignatureFault | undefined> {
    try {
      const payload = await this.#verified(token, key, nowMs);
      if (!this.#hasClaims(payload)) return 'token_claim';
      return this.#coversBody(payload, request.body) ? undefined : 'body_digest';
    } catch (error) {
      const fault = faultOfError(error);
      if (fault === undefined) throw error;
      return fault;
    }
  }

  async #verified(token: string, key: VerificationKey, nowMs: number): Promise<JWTPayload> {
    const { algorithms, issuer, audience, toleranceSeconds, requireExpiry = true, jwksUrl } = this.auth;
    const options: JWTVerifyOptions = {
      algorithms: [...algorithms],
      ...(issuer === undefined ? {} : { issuer }),
      ...(audience === undefined ? {} : { audience: audience === 'secret' ? key.text : audience }),
      clockTolerance: toleranceSeconds,
      currentDate: new Date(nowMs),
      requiredClaims: requireExpiry ? ['exp'] : [],
    };
    if (this.#isSymmetric) return (await jwtVerify(token, Buffer.from(key.text), options)).payload;
    return verifiedByAny(token, keySets.keyFinder(jwksUrl!, nowMs), options);
  }

  #hasClaims(payload: JWTPayload): boolean {
    return Object.entries(this.auth.claims).every(
      ([name, value]) => Object.hasOwn(payload, name) && payload[name] === value,
    );
  }

  #coversBody(payload: JWTPayload, body: Buffer): boolean {
    const { bodyDigest } = this.auth;
    if (!bodyDigest) return true;
    const { claim } = bodyDigest;
    return Object.hasOwn(payload, claim) && payload[claim] === digestOf(body, bodyDigest);
  }

  async #sign(key: VerificationKey, draft: Draft): Promise<Signed> {
    const { algorithms, issuer, audience, claims, bodyDigest, header, prefix } = this.auth;
    const now = Math.floor(draft.nowMs / 1000);
    const digest = bodyDigest ? { [bodyDigest.claim]: digestOf(draft.body, bodyDigest) } : {};
    const token = new SignJWT({ ...claims, ...digest })
      .setProtectedHeader({ alg: algorithms[0]! })
      .setIssuedAt(now)
      .setExpirationTime(now + SAMPLE_LIFETIME_SECONDS);
    if (issuer !== undefined) token.setIssuer([issuer].flat()[0]!);
    if (audience !== undefined) token.setAudience(audience === 'secret' ? key.text : audience);
    const text = await token.sign(Buffer.from(key.text));
    return { headers: { [header.toLowerCase()]: prefix + text } };
  }
}

function digestOf(body: Buffer, { algorithm, encoding }: NonNullable<JwtAuth['bodyDigest']>): string {
  return encode(createHash(algorithm).update(body).digest(), encoding);
}

/** Verifies a token. Tries all keys that its header fits, because issuers may publish keys without an id. */
async function verifiedByAny(
  token: string,
  find: JWTVerifyGetKey,
  options: JWTVerifyOptions,
): Promise<JWTPayload> {
  try {
    return (await jwtVerify(token, find, options)).payload;
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    for await (const key of error) {
      try {
        return (await jwtVerify(token, key, options)).payload;
      } catch (failure) {
        if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure;
      }
    }
    throw new errors.JWSSignatureVerificationFailed();
  }
}

/** Returns the fault that an error means, or undefined if the check could not run. */
function faultOfError(error: unknown): SignatureFault | undefined {
  if (error instanceof PlatformError) return undefined;
  if (error instanceof errors.JWTExpired) return 'token_expired';
  if (error instanceof errors.JWTClaimValidationFailed) return 'token_claim';
  if (error instanceof errors.JOSEAlgNotAllowed) return 'token_algorithm';
  if (error instanceof errors.JWSSignatureVerificationFailed || error instanceof errors.JWKSNoMatchingKey)
    return 'mismatch';
  return error instanceof errors.JOSEError || error instanceof TypeError ? 'token_malformed' : undefined;
}
