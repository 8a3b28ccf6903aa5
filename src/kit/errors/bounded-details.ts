const MAX_DETAILS_BYTES = 64 * 1024;

/**
 * Limits the size of error details from untrusted code. Details above the limit are replaced with their size in bytes.
 */
export function boundedDetails(details: Record<string, unknown>): Record<string, unknown> {
  const bytes = Buffer.byteLength(JSON.stringify(details));
  return bytes <= MAX_DETAILS_BYTES ? details : { truncated: true, bytes };
}
