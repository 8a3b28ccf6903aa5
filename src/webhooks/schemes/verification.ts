import type { WebhookAuthConfig } from '../../contracts/index.ts';
import type { MaybePromise } from '../../kit/data/maybe-promise.ts';
import { type ProviderAuth, providerOf } from '../providers/index.ts';
import { isAllowedAddress } from './address-list.ts';
import { BuiltInScheme } from './built-in-scheme.ts';
import { HmacScheme } from './hmac-scheme.ts';
import { JwtScheme } from './jwt-scheme.ts';
import { type ProofPlaces, proofPlacesOf } from './proof-places.ts';
import { PublicKeyScheme } from './public-key-scheme.ts';
import type { ClaimScheme, Scheme } from './scheme.ts';
import type { SignatureVerdict, SignedRequest } from './signed-request.ts';
import type { TextCache } from './text-cache.ts';
import { BasicScheme, TokenScheme } from './token-scheme.ts';
import { type VerificationKeys, verificationKey } from './verification-key.ts';

/** Types of `auth` that the platform verifies without plugin code. */
export type DeclaredAuth = Exclude<WebhookAuthConfig, { type: 'custom' }>;

/** Key for webhooks without a secret. With this key, a rejection takes as long as the rejection of a wrong secret. */
const DUMMY_KEY = verificationKey('unprovisioned');

/** The compiled schemes of a webhook. */
export class Verification {
  readonly schemes: readonly [Scheme, ...Scheme[]];
  readonly proofPlaces: ProofPlaces;
  /** Whether a check may download a file that the request names, such as a certificate. */
  readonly mayDownload: boolean;
  readonly #ipAllow: readonly string[] | undefined;

  constructor(auths: readonly [ProviderAuth, ...ProviderAuth[]], ipAllow: readonly string[] | undefined) {
    const [first, ...others] = auths;
    this.schemes = [schemeOf(first), ...others.map(schemeOf)];
    this.proofPlaces = proofPlacesOf(auths);
    this.mayDownload = auths.some(({ type }) => type === 'built-in');
    this.#ipAllow = ipAllow;
  }

  /** Returns the scheme that a request uses: the first one whose place it has, or the first one. */
  schemeFor(request: SignedRequest): Scheme {
    const [first] = this.schemes;
    if (this.schemes.length === 1) return first;
    return this.schemes.find((scheme) => scheme.isUsedBy(request)) ?? first;
  }

  /**
   * Verifies a request. A previous secret is evaluated even if the current secret matches. The timing therefore reveals
   * only whether a previous secret exists. @spec Webhook declaration: WebhookAuthConfig
   */
  verify(
    request: SignedRequest,
    keys: VerificationKeys | undefined,
    nowMs: number,
    texts: Pick<TextCache, 'get'>,
  ): MaybePromise<SignatureVerdict> {
    const scheme = this.schemeFor(request);
    if (scheme.kind === 'claim') return verifyClaim(scheme, request, keys, nowMs);
    if (!keys) return { valid: false, fault: 'unprovisioned' };
    return scheme.check(request, keys, { nowMs, fetchText: (url) => texts.get(url, nowMs) });
  }

  allows(source: string): boolean {
    return isAllowedAddress(this.#ipAllow, source);
  }
}

function verifyClaim(
  scheme: ClaimScheme,
  request: SignedRequest,
  keys: VerificationKeys | undefined,
  nowMs: number,
): SignatureVerdict {
  const claim = scheme.read(request, nowMs);
  const { fault, skewSeconds } = claim;
  const current = scheme.matches(keys?.current ?? DUMMY_KEY, claim);
  const previous = keys?.previous ? scheme.matches(keys.previous, claim) : false;

  if (fault) return { valid: false, fault, ...(skewSeconds === undefined ? {} : { skewSeconds }) };
  if (!keys) return { valid: false, fault: 'unprovisioned' };
  if (current) return { valid: true, secret: 'current' };
  if (previous) return { valid: true, secret: 'previous' };
  return { valid: false, fault: 'mismatch' };
}

const verifications = new WeakMap<DeclaredAuth, Verification>();

/** Returns the compiled schemes of a declaration. Cached. @spec docs/webhooks.md "Signatures" */
export function verificationOf(auth: DeclaredAuth): Verification {
  let verification = verifications.get(auth);
  if (!verification) {
    verification = new Verification(authsOf(auth), ipAllowOf(auth));
    verifications.set(auth, verification);
  }
  return verification;
}

/** Returns the addresses that may deliver. A provider that signs nothing is limited to its published addresses. */
export function ipAllowOf(auth: DeclaredAuth): readonly string[] | undefined {
  if (auth.ipAllow || auth.type !== 'provider') return auth.ipAllow;
  const provider = providerOf(auth.provider);
  return provider.auth.every(({ type }) => type === 'token' || type === 'basic')
    ? provider.ipAllow
    : undefined;
}

/** Returns the schemes that a declaration stands for. */
export function authsOf(auth: DeclaredAuth): readonly [ProviderAuth, ...ProviderAuth[]] {
  switch (auth.type) {
    case 'secret':
      return [{ type: 'token', at: { header: auth.header } }];
    case 'hmac':
      return [
        {
          type: 'signature',
          algorithm: 'hmac-sha256',
          signature: { header: auth.header, prefix: auth.prefix, encoding: auth.encoding, format: 'plain' },
          signed: '{body}',
          secret: { encoding: 'text', prefix: '' },
        },
      ];
    case 'provider': {
      const [first, ...others] = providerOf(auth.provider).auth;
      const tolerant = (one: ProviderAuth) => withTolerance(one, auth.toleranceSeconds);
      return [tolerant(first), ...others.map(tolerant)];
    }
    default:
      return [auth];
  }
}

function withTolerance(auth: ProviderAuth, toleranceSeconds: number | undefined): ProviderAuth {
  if (toleranceSeconds === undefined) return auth;
  if (auth.type === 'jwt') return { ...auth, toleranceSeconds };
  if (auth.type !== 'signature' || !auth.timestamp) return auth;
  return { ...auth, timestamp: { ...auth.timestamp, toleranceSeconds } };
}

/** Compiles one scheme. Throws for a declaration that contradicts itself, which manifests cannot contain. */
export function schemeOf(auth: ProviderAuth): Scheme {
  switch (auth.type) {
    case 'signature':
      return auth.algorithm.startsWith('hmac-') ? new HmacScheme(auth) : new PublicKeyScheme(auth);
    case 'basic':
      return new BasicScheme();
    case 'jwt':
      return new JwtScheme(auth);
    case 'token':
      return new TokenScheme(auth.at, auth.prefix);
    case 'built-in':
      return new BuiltInScheme(auth);
  }
}
