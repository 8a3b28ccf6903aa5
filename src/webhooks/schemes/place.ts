import type { RequestPlace } from '../../contracts/index.ts';
import { isRecord } from '../../kit/data/is-record.ts';
import { readDotPath } from '../../kit/data/json.ts';
import { REPEATED, singleHeader } from '../../kit/data/raw-headers.ts';
import { repeatsKey } from './repeated-key.ts';
import type { Sent, SignatureFault, SignedRequest } from './signed-request.ts';

/** A place of a request that contains a text. */
export interface Place {
  read(request: SignedRequest): Sent;
}

/** Returns the reader of a place. A value that was sent more than once is refused, because the valid one is unclear. */
export function placeOf({ header, query, field }: RequestPlace): Place {
  if (header !== undefined) return new HeaderPlace(header);
  if (query !== undefined) return new QueryPlace(query);
  return new FieldPlace(field!);
}

const HEADER_MISSING = { fault: 'header_missing' } as const;
const HEADER_REPEATED = { fault: 'header_repeated' } as const;

export class HeaderPlace implements Place {
  readonly #name: string;

  constructor(name: string) {
    this.#name = name.toLowerCase();
  }

  read({ rawHeaders }: SignedRequest): Sent {
    const value = singleHeader(rawHeaders, this.#name);
    if (value === undefined) return HEADER_MISSING;
    return value === REPEATED ? HEADER_REPEATED : { text: value };
  }
}

class QueryPlace implements Place {
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  read({ target }: SignedRequest): Sent {
    const mark = target.indexOf('?');
    const values = mark === -1 ? [] : new URLSearchParams(target.slice(mark + 1)).getAll(this.#name);
    return values.length === 1
      ? { text: values[0]! }
      : { fault: values.length === 0 ? 'query_missing' : 'query_repeated' };
  }
}

/** A field of the parsed body. A name that exists as a whole has precedence over a dot path, because forms are flat. */
export class FieldPlace implements Place {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  read(request: SignedRequest): Sent {
    const fields = request.fields();
    const isWhole = isRecord(fields) && Object.hasOwn(fields, this.#path);
    const value = isWhole ? fields[this.#path] : readDotPath(fields, this.#path);
    if (Array.isArray(value)) return { fault: 'field_repeated' };
    const text = textOf(value);
    if (text === undefined) return { fault: 'field_missing' };
    const path = isWhole ? [this.#path] : this.#path.split('.');
    return repeatsKey(request.body, path) ? { fault: 'field_repeated' } : { text };
  }
}

/** Returns the text of a scalar. Numbers that JSON parsing could have changed have no text. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return String(value);
  return typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : undefined;
}

/** Returns whether a fault means that the request does not have the place at all. */
export function isMissing(fault: SignatureFault | undefined): boolean {
  return fault === 'header_missing' || fault === 'query_missing' || fault === 'field_missing';
}
