import { z } from 'zod';
import { PlatformConfig } from '../../contracts/index.ts';
import { nearest } from '../data/nearest.ts';
import { bare, keysAt } from '../data/schema-keys.ts';
import { typeName, valueAt, withArticle } from '../data/schema-problems.ts';
import { certificateFault } from '../security/certificates.ts';

/** A config error with the path of the key and a message such as `must be at least 1`. */
export interface ConfigProblem {
  path: string;
  message: string;
}

/** A config error that is not yet assigned to the base config or to a profile. */
export interface RawProblem {
  path: PropertyKey[];
  message: string;
}

/** Validates a merged config and returns all problems. */
export function findProblems(candidate: unknown): RawProblem[] {
  const parsed = PlatformConfig.safeParse(candidate);
  if (parsed.success) return certificateProblems(parsed.data);
  return parsed.error.issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => ({ path: [...issue.path, key], message: unknownKey(issue.path, key) }))
      : [{ path: [...issue.path], message: phrase(issue, candidate) }],
  );
}

/** The schema checks only the form of certificates, because browsers use it too. */
function certificateProblems({ alerts }: PlatformConfig): RawProblem[] {
  return Object.entries(alerts.channels).flatMap(([name, channel]) => {
    const message = channel.type === 'email' && channel.ca ? certificateFault(channel.ca) : undefined;
    return message === undefined ? [] : [{ path: ['alerts', 'channels', name, 'ca'], message }];
  });
}

/**
 * Formats a path as in JavaScript: `gateway.staticTokens["…"].hostId`. Static tokens are masked because they are
 * secrets.
 */
export function formatPath(path: readonly PropertyKey[]): string {
  let text = '';
  path.forEach((key, index) => {
    if (typeof key === 'number') text += `[${key}]`;
    else {
      const isToken = index === 2 && path[0] === 'gateway' && path[1] === 'staticTokens';
      const name = isToken ? maskToken(String(key)) : String(key);
      if (!/^[A-Za-z_$][\w$-]*$/.test(name)) text += `[${JSON.stringify(name)}]`;
      else text += index === 0 ? name : `.${name}`;
    }
  });
  return text;
}

function maskToken(token: string): string {
  return token.length > 12 ? `${token.slice(0, 3)}…` : '…';
}

function phrase(issue: z.core.$ZodIssue, candidate: unknown): string {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${withArticle(issue.expected)}, not ${typeName(valueAt(candidate, issue.path))}`;
    case 'invalid_value':
      return `must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map((value) => JSON.stringify(value)).join(', ')}`;
    case 'too_small':
      return issue.origin === 'string'
        ? 'must not be empty'
        : `must be ${issue.inclusive ? 'at least' : 'more than'} ${issue.minimum}`;
    case 'too_big':
      return `must be ${issue.inclusive ? 'at most' : 'less than'} ${issue.maximum}`;
    case 'invalid_format':
      return issue.format === 'url' ? 'must be an http:// or https:// address' : lowerFirst(issue.message);
    case 'invalid_union':
      return choices(issue.message) ?? lowerFirst(issue.message);
    case 'invalid_key':
      return `is not a valid name here: ${issue.issues.map((inner) => lowerFirst(inner.message)).join('; ')}`;
    default:
      return lowerFirst(issue.message);
  }
}

/** Extracts the valid discriminator values of a union from zod's message, which contains them in quotes. */
function choices(message: string): string | undefined {
  const values = [...message.matchAll(/'([^']+)'/g)].map(([, value]) => JSON.stringify(value));
  return values.length === 0 ? undefined : `must be one of ${values.join(', ')}`;
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);

/**
 * Returns the message for an unknown key. The message suggests a similar key, or another path at which the same key is
 * valid.
 */
function unknownKey(parent: readonly PropertyKey[], key: string): string {
  const siblings = keysAt(PlatformConfig, parent);
  const close = nearest(key, siblings);
  if (close) return `is not a known key; did you mean ${formatPath([...parent, close])}?`;
  const otherPaths = knownPaths(PlatformConfig, []).filter((path) => path.at(-1) === key);
  if (otherPaths.length > 0)
    return `is not a known key here; did you mean ${otherPaths.map(formatPath).join(' or ')}?`;
  return siblings.length > 0
    ? `is not a known key; known keys: ${siblings.filter((name) => name !== '$schema').join(', ')}`
    : 'is not a known key';
}

function knownPaths(schema: z.core.$ZodType, at: string[]): string[][] {
  const object = bare(schema);
  if (!(object instanceof z.ZodObject)) return [];
  return Object.entries(object.shape as Record<string, z.core.$ZodType>).flatMap(([key, child]) => [
    [...at, key],
    ...knownPaths(child, [...at, key]),
  ]);
}
