/** Result of `singleHeader` for a header that was sent more than once. */
export const REPEATED = Symbol('repeated');

/**
 * Returns a header's value from Node's flat list of names and values. Returns REPEATED if the header occurs more than
 * once, because the valid value is then unclear.
 */
export function singleHeader(
  rawHeaders: readonly string[],
  name: string,
): string | undefined | typeof REPEATED {
  const wanted = name.toLowerCase();
  let found: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const candidate = rawHeaders[i]!;
    if (candidate.length !== wanted.length || candidate.toLowerCase() !== wanted) continue;
    if (found !== undefined) return REPEATED;
    found = rawHeaders[i + 1]!;
  }
  return found;
}
