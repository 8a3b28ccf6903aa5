export { isAllowedAddress } from './address-list.ts';
export type { BuiltInTools, BuiltInVerifier } from './built-in.ts';
export { HmacScheme } from './hmac-scheme.ts';
export { lenientSignatures } from './lenient-signatures.ts';
export { PublicKeyScheme, publicKeyOf } from './public-key-scheme.ts';
export type { Claim, ClaimScheme, Draft, Scheme, Signed } from './scheme.ts';
export { withSigned } from './sign-draft.ts';
export type { SignatureFault, SignatureVerdict, SignedRequest } from './signed-request.ts';
export type { Message } from './template.ts';
export { TextCache } from './text-cache.ts';
export { BasicScheme, TokenScheme } from './token-scheme.ts';
export {
  authsOf,
  type DeclaredAuth,
  ipAllowOf,
  schemeOf,
  Verification,
  verificationOf,
} from './verification.ts';
export { VerificationKey, type VerificationKeys, verificationKey } from './verification-key.ts';
