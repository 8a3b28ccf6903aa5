import type {
  DeclaredAuth,
  SignatureFault,
  SignedRequest,
  VerificationKeys,
} from '../../../../../webhooks/schemes/index.ts';

/**
 * Explanation of a failed authentication. Only operators are allowed to see the explanation, because it describes a
 * valid request.
 */
export interface Explanation {
  reason: string;
  hint: string;
  skewSeconds?: number;
}

export interface RefusedDelivery {
  auth: DeclaredAuth;
  fault: SignatureFault;
  skewSeconds?: number | undefined;
  request: SignedRequest;
  /** URL of the request without regard to `gateway.publicUrl`. */
  directUrl: string;
  keys: VerificationKeys | undefined;
  nowMs: number;
}
