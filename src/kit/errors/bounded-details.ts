const MAX_DETAILS_BYTES = 64 * 1024;

/** Limits the error details that untrusted code reports. Details above the limit are replaced by their size. */
export function boundedDetails(details: Record<string, unknown>): Record<string, unknown> {
  const bytes = Buffer.byteLength(JSON.stringify(details));
  return bytes <= MAX_DETAILS_BYTES ? details : { truncated: true, bytes };
}
