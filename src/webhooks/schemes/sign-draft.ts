import type { RequestPlace, SignatureAuth } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import { encode } from './encoding.ts';
import { placeOf } from './place.ts';
import type { Draft, Signed } from './scheme.ts';
import { type Message, Template } from './template.ts';
import { timestampText } from './timestamp.ts';

/** Signs a draft as its sender would. Throws VALIDATION_ERROR if the draft lacks a value that the signature covers. */
export function signDraft(auth: SignatureAuth, draft: Draft, digest: (message: Message) => Buffer): Signed {
  const { signature, timestamp: declared } = auth;
  const signed: Signed = { headers: {} };
  const timestamp = declared ? timestampText(draft.nowMs, declared.unit) : '';
  const params = new Map<string, string>();
  if (declared?.param !== undefined) params.set(declared.param, timestamp);
  else if (declared) put(signed, declared, timestamp);
  const id = idOf(auth, draft, signed);
  const request = withSigned(draft, signed);
  const { message, fault } = new Template(auth.signed).message(request, { timestamp, id, params });
  if (fault)
    throw new PlatformError(
      'VALIDATION_ERROR',
      `The delivery cannot be signed (${fault}): it lacks a value that the signature covers. Signed are: ${auth.signed}`,
    );
  const text = encode(digest(message), signature.encoding);
  put(signed, signature, signature.prefix + listed(signature.format, params, text));
  return signed;
}

function listed(
  format: SignatureAuth['signature']['format'],
  params: Map<string, string>,
  text: string,
): string {
  if (format === 'plain') return text;
  const items = [...params, [format.key, text] as const];
  return items.map(([name, value]) => name + format.assign + value).join(format.separator);
}

function idOf({ id }: SignatureAuth, draft: Draft, signed: Signed): string {
  if (!id) return '';
  const sent = placeOf(id).read(draft);
  if (sent.text !== undefined && sent.text !== '') return sent.text;
  put(signed, id, draft.id);
  return draft.id;
}

/** Adds a value to what the sender sends. */
export function put(signed: Signed, { header, query, field }: RequestPlace, value: string): void {
  if (header !== undefined) signed.headers[header.toLowerCase()] = value;
  else if (query !== undefined) signed.query = { ...signed.query, [query]: value };
  else signed.fields = { ...signed.fields, [field!]: value };
}

/** Returns the draft with the values added so far, which the signature may cover. */
export function withSigned(draft: Draft, { headers, query, fields }: Signed): Draft {
  const set = new Set(Object.keys(headers));
  const rawHeaders: string[] = [];
  for (let i = 0; i < draft.rawHeaders.length; i += 2)
    if (!set.has(draft.rawHeaders[i]!.toLowerCase()))
      rawHeaders.push(draft.rawHeaders[i]!, draft.rawHeaders[i + 1]!);
  rawHeaders.push(...Object.entries(headers).flat());
  const body = fields ? withFields(draft, fields) : draft.body;
  return {
    ...draft,
    fields: fields ? () => JSON.parse(body.toString()) as unknown : draft.fields,
    url: withQuery(draft.url, query),
    target: withQuery(draft.target, query),
    rawHeaders,
    body,
  };
}

function withQuery(url: string, query: Record<string, string> = {}): string {
  return Object.entries(query).reduce(
    (text, [name, value]) => `${text}${text.includes('?') ? '&' : '?'}${name}=${encodeURIComponent(value)}`,
    url,
  );
}

function withFields(draft: Draft, fields: Record<string, string>): Buffer {
  let root: unknown;
  try {
    root = JSON.parse(draft.body.toString());
  } catch {
    root = undefined;
  }
  if (typeof root !== 'object' || root === null || Array.isArray(root))
    throw new PlatformError(
      'VALIDATION_ERROR',
      'The signature is a field of the body, so the body must be a JSON object.',
    );
  for (const [path, value] of Object.entries(fields))
    setField(root as Record<string, unknown>, path.split('.'), value);
  return Buffer.from(JSON.stringify(root));
}

function setField(object: Record<string, unknown>, [name, ...rest]: string[], value: string): void {
  if (name === undefined) return;
  const own = Object.hasOwn(object, name) ? object[name] : undefined;
  const next = rest.length === 0 ? value : typeof own === 'object' && own !== null ? own : {};
  // An assignment to `__proto__` would change the prototype.
  Object.defineProperty(object, name, { value: next, enumerable: true, configurable: true, writable: true });
  if (rest.length > 0) setField(next as Record<string, unknown>, rest, value);
}
