import { type ProofPlaces, verificationOf } from '../../../../../webhooks/schemes/index.ts';
import type { DeclaredWebhook } from '../receive/targets.ts';

/** Returns the headers and query parameters that contain the proof of a sender. Undefined if a plugin checks it. */
export function proofPlacesOf({ webhook: { auth } }: DeclaredWebhook): ProofPlaces | undefined {
  return auth.type === 'custom' ? undefined : verificationOf(auth).proofPlaces;
}
