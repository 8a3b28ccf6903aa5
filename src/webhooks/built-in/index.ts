import type { BuiltInAuth } from '../providers/provider.ts';
import type { BuiltInVerifier } from '../schemes/built-in.ts';
import { verifyAwsSns } from './aws-sns.ts';

/** Checks of schemes that data cannot express, by name. */
export const BUILT_IN_VERIFIERS: Partial<Record<BuiltInAuth['verifier'], BuiltInVerifier>> = {
  'aws-sns': verifyAwsSns,
};
