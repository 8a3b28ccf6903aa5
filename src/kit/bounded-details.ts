const MAX_DETAILS_BYTES = 64 * 1024;

/** The details of a failure that untrusted code reports; larger ones are replaced by their size. */
export function boundedDetails(details: Record<string, unknown>): Record<string, unknown> {
  const bytes = Buffer.byteLength(JSON.stringify(details));
  return bytes <= MAX_DETAILS_BYTES ? details : { truncated: true, bytes };
}
