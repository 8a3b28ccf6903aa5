/** A placeholder of a template of signed bytes. */
export type Placeholder =
  | { name: 'body' | 'timestamp' | 'id' | 'method' | 'url' | 'path' | 'query' | 'sortedForm' }
  | { name: 'header'; of: string }
  | { name: 'field'; of: string }
  | { name: 'param'; of: string };

/** A literal text or a placeholder. */
export type TemplatePart = string | Placeholder;

const PLAIN = ['body', 'timestamp', 'id', 'method', 'url', 'path', 'query', 'sortedForm'] as const;
const NAMED = ['header', 'field', 'param'] as const;

/**
 * Splits a template of signed bytes into its parts. `{{` and `}}` are literal braces. Returns a fault for an unknown
 * placeholder and for an unbalanced brace.
 */
export function parseTemplate(text: string): { parts: TemplatePart[] } | { fault: string } {
  const parts: TemplatePart[] = [];
  let literal = '';
  for (let at = 0; at < text.length; at++) {
    const char = text[at]!;
    if (char !== '{' && char !== '}') {
      literal += char;
    } else if (text[at + 1] === char) {
      literal += char;
      at++;
    } else {
      const end = char === '{' ? text.indexOf('}', at) : -1;
      if (end === -1)
        return {
          fault: `has an unbalanced "${char}" at position ${at}: write "${char}${char}" for a literal brace`,
        };
      const placeholder = placeholderOf(text.slice(at + 1, end));
      if (!placeholder)
        return {
          fault: `has the unknown placeholder "${text.slice(at, end + 1)}": use ${[...PLAIN.map((name) => `{${name}}`), ...NAMED.map((name) => `{${name}:<name>}`)].join(', ')}`,
        };
      if (literal !== '') parts.push(literal);
      literal = '';
      parts.push(placeholder);
      at = end;
    }
  }
  if (literal !== '') parts.push(literal);
  return { parts };
}

function placeholderOf(text: string): Placeholder | undefined {
  const plain = PLAIN.find((name) => name === text);
  if (plain) return { name: plain };
  const name = NAMED.find((one) => text.startsWith(`${one}:`));
  const of = text.slice(text.indexOf(':') + 1);
  return name && of !== '' ? { name, of } : undefined;
}

interface Place {
  header?: string | undefined;
  query?: string | undefined;
  field?: string | undefined;
}

/** The parts of a signature scheme that depend on each other. */
export interface SignatureRules {
  algorithm: string;
  signature: Place & {
    format: 'plain' | { separator: string; assign: string; key: string };
    alternatives?: readonly Place[] | undefined;
  };
  signed: string;
  timestamp?: (Place & { param?: string | undefined }) | undefined;
  id?: unknown;
  key?: string | undefined;
}

export interface RuleFault {
  path: string[];
  message: string;
}

/** Returns the contradictions of a signature scheme. Each message says how to resolve the contradiction. */
export function signatureFaults(auth: SignatureRules): RuleFault[] {
  const faults: RuleFault[] = [...keyFaults(auth)];
  const { signature, timestamp } = auth;
  if (count(signature.header, signature.query, signature.field) !== 1)
    faults.push({ path: ['signature'], message: 'must name exactly one of "header", "query" and "field"' });
  // Parameters such as the timestamp would otherwise exist once for each place.
  if (signature.alternatives && signature.format !== 'plain')
    faults.push({ path: ['signature', 'alternatives'], message: 'requires "plain" as "signature.format"' });
  if (timestamp && count(timestamp.header, timestamp.query, timestamp.field, timestamp.param) !== 1)
    faults.push({
      path: ['timestamp'],
      message: 'must name exactly one of "header", "query", "field" and "param"',
    });
  if (timestamp?.param !== undefined && signature.format === 'plain')
    faults.push({ path: ['timestamp', 'param'], message: 'requires a list as "signature.format"' });
  const template = parseTemplate(auth.signed);
  if ('fault' in template) return [...faults, { path: ['signed'], message: template.fault }];
  return [...faults, ...templateFaults(auth, template.parts)];
}

function keyFaults({ algorithm, key }: SignatureRules): RuleFault[] {
  if (algorithm.startsWith('hmac-') === (key === undefined)) return [];
  return key === undefined
    ? [
        {
          path: ['key'],
          message: `is required for ${algorithm}: declare the format of the sender's public key`,
        },
      ]
    : [{ path: ['key'], message: `is for public keys, and ${algorithm} has none: remove it` }];
}

function templateFaults(auth: SignatureRules, parts: readonly TemplatePart[]): RuleFault[] {
  const faults: RuleFault[] = [];
  const fault = (message: string) => faults.push({ path: ['signed'], message });
  const has = (name: Placeholder['name']) =>
    parts.some((part) => typeof part !== 'string' && part.name === name);
  if (parts.every((part) => typeof part === 'string'))
    fault('has no placeholder, so every delivery would have the same signature: add {body}');
  if (has('timestamp') && !auth.timestamp) fault('has {timestamp}: declare "timestamp" with its place');
  if (has('id') && !auth.id) fault('has {id}: declare "id" with its place');
  if (auth.id && !has('id')) fault('does not contain {id}: add it, or remove "id"');
  if (has('param') && auth.signature.format === 'plain')
    fault('has {param:…}, which requires a list as "signature.format"');
  if (auth.timestamp && !coversTimestamp(auth.timestamp, parts))
    fault(
      'does not cover the timestamp, which anybody could then change: add {timestamp}, or remove "timestamp"',
    );
  return faults;
}

/** Returns whether the signed bytes contain the timestamp: as {timestamp}, or with the part of the request it is in. */
function coversTimestamp(
  timestamp: NonNullable<SignatureRules['timestamp']>,
  parts: readonly TemplatePart[],
): boolean {
  return parts.some((part) => {
    if (typeof part === 'string') return false;
    switch (part.name) {
      case 'timestamp':
        return true;
      case 'body':
      case 'sortedForm':
        return timestamp.field !== undefined;
      case 'url':
      case 'query':
        return timestamp.query !== undefined;
      case 'header':
        return part.of.toLowerCase() === timestamp.header?.toLowerCase();
      case 'field':
        return part.of === timestamp.field;
      case 'param':
        return part.of === timestamp.param;
      default:
        return false;
    }
  });
}

function count(...names: Array<string | undefined>): number {
  return names.filter((name) => name !== undefined).length;
}

/**
 * Returns the faults of a JWT scheme: an algorithm without the key that it needs, algorithms with different kinds of
 * keys, or a `jwksUrl` without an audience or claims.
 */
export function jwtFaults({
  algorithms,
  jwksUrl,
  audience,
  claims,
}: {
  algorithms: readonly string[];
  jwksUrl?: string | undefined;
  audience?: string | undefined;
  claims: Readonly<Record<string, unknown>>;
}): RuleFault[] {
  const symmetric = algorithms.filter((name) => name.startsWith('HS'));
  if (symmetric.length > 0 && symmetric.length < algorithms.length)
    // A sender could otherwise present a public key of the list as the secret of an HMAC.
    return [{ path: ['algorithms'], message: 'mixes HMAC with public-key algorithms: keep one kind' }];
  if (symmetric.length === 0 && jwksUrl === undefined)
    return [
      {
        path: ['jwksUrl'],
        message: `is required for ${algorithms.join(', ')}: the URL of the issuer's public keys`,
      },
    ];
  if (symmetric.length > 0 && jwksUrl !== undefined)
    return [
      {
        path: ['jwksUrl'],
        message: `is for public keys, and ${symmetric.join(', ')} uses the secret: remove it`,
      },
    ];
  if (jwksUrl !== undefined && !isSafeUrl(jwksUrl))
    return [{ path: ['jwksUrl'], message: 'must use https, except on a loopback address' }];
  if (jwksUrl !== undefined && audience === undefined && Object.keys(claims).length === 0)
    return [
      {
        path: ['audience'],
        message:
          'is required with jwksUrl, unless claims are given: otherwise every token of the issuer would be accepted, also one for another recipient',
      },
    ];
  return [];
}

function isSafeUrl(text: string): boolean {
  const { protocol, hostname } = new URL(text);
  return protocol === 'https:' || ['localhost', '127.0.0.1', '[::1]'].includes(hostname);
}
