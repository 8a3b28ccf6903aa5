import type { BuiltInAuth } from '../providers/provider.ts';
import type { BuiltInVerifier } from '../schemes/built-in.ts';
import { verifyAwsSns } from './aws-sns.ts';
import { verifyPayPal } from './paypal.ts';
import { verifyTwilio } from './twilio.ts';

/** Checks of schemes that data cannot express, by name. */
export const BUILT_IN_VERIFIERS: Readonly<Record<BuiltInAuth['verifier'], BuiltInVerifier>> = {
  'aws-sns': verifyAwsSns,
  paypal: verifyPayPal,
  twilio: verifyTwilio,
};
