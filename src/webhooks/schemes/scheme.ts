import type { MaybePromise } from '../../kit/data/maybe-promise.ts';
import type { BuiltInTools } from './built-in.ts';
import type { SignatureFault, SignatureVerdict, SignedRequest } from './signed-request.ts';
import type { Message } from './template.ts';
import type { VerificationKey, VerificationKeys } from './verification-key.ts';

/** Signatures that a request contains. A request with a `fault` is invalid. */
export interface Claim {
  /** Decoded signatures. Some senders send several signatures during a secret rotation. */
  signatures: readonly Buffer[];
  /** Parts of the signed message, in order. */
  message: Message;
  fault?: SignatureFault | undefined;
  /** Age of the signed timestamp in seconds. Negative if the timestamp is in the future. */
  skewSeconds?: number | undefined;
}

/** An unsigned request that is to be signed. */
export interface Draft extends SignedRequest {
  nowMs: number;
  /** Value of `{id}`, unless the request already has one. */
  id: string;
}

/** What a sender adds to a draft. */
export interface Signed {
  headers: Record<string, string>;
  /** Query parameters to append to the URL. */
  query?: Record<string, string>;
  /** Fields to set in a JSON body, by dot path. */
  fields?: Record<string, string>;
}

/** A scheme whose check compares what the request contains with the secret. */
export interface ClaimScheme {
  kind: 'claim';
  /** Whether the request has the place of the signature or token. */
  isUsedBy(request: SignedRequest): boolean;
  read(request: SignedRequest, nowMs: number): Claim;
  /** Compares without early exit. */
  matches(key: VerificationKey, claim: Claim): boolean;
  /** Whether the request contains the secret itself. */
  isSecretSent?: boolean;
  /** Signs a draft as a sender with this secret. Undefined if the secret cannot sign. */
  sign?(key: VerificationKey, draft: Draft): MaybePromise<Signed>;
}

/** A scheme whose check may need the network, such as for the issuer's public keys. */
export interface CheckScheme {
  kind: 'check';
  isUsedBy(request: SignedRequest): boolean;
  /** Throws SERVICE_UNAVAILABLE if the check could not run. */
  isSecretSent?: boolean;
  check(request: SignedRequest, keys: VerificationKeys, tools: BuiltInTools): Promise<SignatureVerdict>;
  sign?(key: VerificationKey, draft: Draft): MaybePromise<Signed>;
}

export type Scheme = ClaimScheme | CheckScheme;
