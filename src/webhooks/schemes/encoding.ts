import type { SignatureAuth } from '../../contracts/index.ts';

export type Encoding = SignatureAuth['signature']['encoding'];

/** Decodes bytes. Returns undefined unless the text is the canonical encoding. */
export function decode(text: string, encoding: Encoding): Buffer | undefined {
  if (encoding === 'hex-any-case') return decode(text.toLowerCase(), 'hex');
  const bytes = Buffer.from(text, encoding);
  return bytes.length > 0 && bytes.toString(encoding) === text ? bytes : undefined;
}

export function encode(bytes: Buffer, encoding: Encoding): string {
  return bytes.toString(encoding === 'hex-any-case' ? 'hex' : encoding);
}
