/** Failure of a provider. The message never contains an answer of the provider, which could contain a token. */
export class ProviderError extends Error {
  /** Error code of OAuth, such as `invalid_grant`, or one of ours in lower case. */
  readonly code: string;
  /** Whether repeating the request cannot help. */
  readonly isFinal: boolean;

  constructor(
    code: string,
    message: string,
    { isFinal = false, cause }: { isFinal?: boolean; cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? {} : { cause });
    this.code = code;
    this.isFinal = isFinal;
  }
}

/** Error codes of token endpoints after which only a new authorization helps. */
const NEEDS_AUTHORIZATION = new Set([
  'invalid_grant',
  // Names that GitHub, Slack and Salesforce use.
  'bad_refresh_token',
  'bad_verification_code',
  'invalid_refresh_token',
  'token_revoked',
  'token_expired',
  'inactive_user',
  'inactive_org',
]);

export const needsAuthorization = (code: string): boolean => NEEDS_AUTHORIZATION.has(code);

const MAX_CODE_CHARS = 64;

/** Returns an error code of a provider as text that is safe to store and to show. */
export function safeCode(code: unknown): string {
  if (typeof code !== 'string' || !/^[\w.:-]+$/.test(code)) return 'unknown_error';
  return code.slice(0, MAX_CODE_CHARS);
}

const MAX_CAUSES = 6;

/** Returns an error with its causes, outermost first. */
export function causesOf(error: unknown): unknown[] {
  const found: unknown[] = [];
  for (
    let one = error;
    one !== undefined && found.length < MAX_CAUSES;
    one = (one as { cause?: unknown }).cause
  ) {
    found.push(one);
    if (typeof one !== 'object' || one === null) break;
  }
  return found;
}
