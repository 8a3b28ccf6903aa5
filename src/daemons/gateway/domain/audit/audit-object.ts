import type { AccessRule } from '../../../../contracts/index.ts';
import { isRecord } from '../../../../kit/data/is-record.ts';

/** Parts of a call that name its object. */
export interface AuditedParts {
  params: unknown;
  query?: unknown;
  body?: unknown;
  reply?: unknown;
}

const MAX_CHARS = 400;
const FIELD = /\{([\w|]+)\}/g;

/** Returns the text of an audited object. Fields that no part contains are omitted. */
export function objectOf({ object = '' }: AccessRule, { params, body, query, reply }: AuditedParts): string {
  const parts = [params, body, query, reply];
  const text = object.replaceAll(FIELD, (_, names: string) => {
    const values = names.split('|').flatMap((name) => parts.map((part) => fieldOf(part, name)));
    return values.find((value) => value !== undefined && value !== '') ?? '';
  });
  return text.replace(/[/:]+$/, '').slice(0, MAX_CHARS);
}

function fieldOf(part: unknown, name: string): string | undefined {
  const value = isRecord(part) && Object.hasOwn(part, name) ? part[name] : undefined;
  return typeof value === 'string' ? withoutCredentials(value) : undefined;
}

/** Removes user and password of a URL. The source of a plugin can contain them. */
const withoutCredentials = (text: string): string => text.replace(/\/\/[^/\s]*@/, '//');
