import type { SignatureFault, SignedRequest } from './signed-request.ts';

/** Means of a check beside the request. */
export interface BuiltInTools {
  nowMs: number;
  /**
   * Fetches a text of at most 256 KB over HTTPS, without following redirects. Results are cached for some minutes. Throws
   * SERVICE_UNAVAILABLE if the text cannot be fetched. The caller must check the host of the URL first.
   */
  fetchText(url: string): Promise<string>;
}

/**
 * Check of a scheme that data cannot express. Resolves with true if the delivery is authentic, and with false or a fault
 * otherwise. Rejects only if the check could not run.
 */
export type BuiltInVerifier = (
  request: SignedRequest,
  secret: string,
  tools: BuiltInTools,
) => Promise<boolean | SignatureFault>;
