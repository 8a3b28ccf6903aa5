import { singleHeader } from '../../kit/data/raw-headers.ts';
import type { SignedRequest } from './signed-request.ts';

const FORM = 'application/x-www-form-urlencoded';

/**
 * Returns the names and values of a form, sorted by name and without separators. Equal values of one name count once, and
 * its other values are sorted. Returns undefined for a body of another type, which such a signature would not cover.
 */
export function sortedForm({ rawHeaders, body }: SignedRequest): string | undefined {
  const type = singleHeader(rawHeaders, 'content-type');
  const isForm = typeof type === 'string' && type.split(';', 1)[0]!.trim().toLowerCase() === FORM;
  if (!isForm) return body.length === 0 ? '' : undefined;
  const values = new Map<string, Set<string>>();
  for (const [name, value] of new URLSearchParams(body.toString('utf8'))) {
    const known = values.get(name);
    if (known) known.add(value);
    else values.set(name, new Set([value]));
  }
  return [...values.keys()]
    .sort()
    .flatMap((name) => [...values.get(name)!].sort().map((value) => name + value))
    .join('');
}
