import type { SignatureAuth } from '../../contracts/index.ts';

export type ListFormat = Exclude<SignatureAuth['signature']['format'], 'plain'>;

/** Signatures and parameters of a list. A parameter that occurs twice is null, because the valid one is unclear. */
export interface List {
  signatures: string[];
  params: ReadonlyMap<string, string | null>;
}

/** Maximum length of a list in characters. */
const MAX_LIST_CHARS = 16 * 1024;

/** Splits a list such as `t=1,v1=…,v1=…`. Returns undefined for a list that is too long. */
export function splitList(text: string, { separator, assign, key }: ListFormat): List | undefined {
  if (text.length > MAX_LIST_CHARS) return undefined;
  const signatures: string[] = [];
  const params = new Map<string, string | null>();
  for (const item of text.split(separator)) {
    const at = item.indexOf(assign);
    if (at === -1) continue;
    const name = item.slice(0, at).trim();
    const value = item.slice(at + assign.length).trim();
    if (name === key) signatures.push(value);
    else params.set(name, params.has(name) ? null : value);
  }
  return { signatures, params };
}
