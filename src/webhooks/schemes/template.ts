import { parseTemplate } from '../../contracts/index.ts';
import { FieldPlace, HeaderPlace, type Place } from './place.ts';
import type { SignatureFault, SignedRequest } from './signed-request.ts';
import { sortedForm } from './sorted-form.ts';

export type Message = ReadonlyArray<string | Buffer>;

/** Values that the scheme has read before the template. */
export interface TemplateValues {
  timestamp: string;
  id: string;
  /** Parameters of a list that contains the signature. */
  params: ReadonlyMap<string, string | null> | undefined;
}

type Part =
  | string
  | { name: 'body' | 'timestamp' | 'id' | 'method' | 'url' | 'path' | 'query' | 'sortedForm' }
  | { name: 'place'; place: Place; isLatin1: boolean }
  | { name: 'param'; of: string };

/** A compiled template of signed bytes. @spec docs/webhooks.md "Signatures" */
export class Template {
  readonly #parts: readonly Part[];
  /** Whether the template is `{body}` alone, which most schemes have. */
  readonly #isBodyOnly: boolean;

  /** Throws for an invalid template. Manifests are checked before. */
  constructor(text: string) {
    const parsed = parseTemplate(text);
    if ('fault' in parsed) throw new Error(`The template ${JSON.stringify(text)} ${parsed.fault}.`);
    this.#parts = parsed.parts.map((part): Part => {
      if (typeof part === 'string') return part;
      if (part.name === 'header') return { name: 'place', place: new HeaderPlace(part.of), isLatin1: true };
      if (part.name === 'field') return { name: 'place', place: new FieldPlace(part.of), isLatin1: false };
      return part;
    });
    const [only] = this.#parts;
    this.#isBodyOnly = this.#parts.length === 1 && typeof only !== 'string' && only?.name === 'body';
  }

  /** Returns the signed bytes in parts. A missing part is empty, and its fault is returned. */
  message(
    request: SignedRequest,
    values: TemplateValues,
  ): { message: Message; fault?: SignatureFault | undefined } {
    if (this.#isBodyOnly) return { message: [request.body] };
    const message: Array<string | Buffer> = [];
    let fault: SignatureFault | undefined;
    for (const part of this.#parts) {
      const value = typeof part === 'string' ? part : partValue(part, request, values);
      if (typeof value === 'string' || Buffer.isBuffer(value)) message.push(value);
      else fault ??= value.fault;
    }
    return { message, fault };
  }
}

function partValue(
  part: Exclude<Part, string>,
  request: SignedRequest,
  values: TemplateValues,
): string | Buffer | { fault: SignatureFault } {
  switch (part.name) {
    case 'body':
      return request.body;
    case 'timestamp':
      return values.timestamp;
    case 'id':
      return values.id;
    case 'method':
      return request.method;
    case 'url':
      return request.url;
    case 'path':
      return splitTarget(request.target).path;
    case 'query':
      return splitTarget(request.target).query;
    case 'sortedForm':
      return sortedForm(request) ?? { fault: 'body_not_form' };
    case 'param': {
      const value = values.params?.get(part.of);
      return value ?? { fault: 'prefix_missing' };
    }
    case 'place': {
      const sent = part.place.read(request);
      if (sent.text === undefined) return { fault: sent.fault };
      // Node decodes header bytes as Latin-1. The sender signed the bytes.
      return part.isLatin1 ? Buffer.from(sent.text, 'latin1') : sent.text;
    }
  }
}

function splitTarget(target: string): { path: string; query: string } {
  const mark = target.indexOf('?');
  return mark === -1
    ? { path: target, query: '' }
    : { path: target.slice(0, mark), query: target.slice(mark + 1) };
}
