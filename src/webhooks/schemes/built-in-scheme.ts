import { BUILT_IN_VERIFIERS } from '../built-in/index.ts';
import type { BuiltInAuth } from '../providers/provider.ts';
import type { BuiltInTools, BuiltInVerifier } from './built-in.ts';
import type { CheckScheme } from './scheme.ts';
import type { SignatureVerdict, SignedRequest } from './signed-request.ts';
import type { VerificationKeys } from './verification-key.ts';

/** A scheme that a function of the platform checks. */
export class BuiltInScheme implements CheckScheme {
  readonly kind = 'check';
  readonly auth: BuiltInAuth;
  readonly #verify: BuiltInVerifier;

  constructor(auth: BuiltInAuth) {
    this.auth = auth;
    this.#verify = BUILT_IN_VERIFIERS[auth.verifier];
  }

  /** A built-in verifier decides by itself what a request must have. */
  isUsedBy(): boolean {
    return true;
  }

  async check(
    request: SignedRequest,
    keys: VerificationKeys,
    tools: BuiltInTools,
  ): Promise<SignatureVerdict> {
    const current = await this.#verify(request, keys.current.text, tools);
    if (current === true) return { valid: true, secret: 'current' };
    const previous = keys.previous ? await this.#verify(request, keys.previous.text, tools) : false;
    if (previous === true) return { valid: true, secret: 'previous' };
    return { valid: false, fault: current === false ? 'mismatch' : current };
  }
}
