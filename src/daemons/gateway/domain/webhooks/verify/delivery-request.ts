import { isUtf8 } from 'node:buffer';
import { LIMITS } from '../../../../../contracts/index.ts';
import { nestsDeeperThan } from '../../../../../kit/data/json.ts';
import { singleHeader } from '../../../../../kit/data/raw-headers.ts';
import type { SignedRequest } from '../../../../../webhooks/schemes/index.ts';
import type { IncomingDelivery } from '../receive/delivery-context.ts';

/** The parts of a received request that its verification needs. */
export type ReceivedRequest = Pick<
  IncomingDelivery,
  'method' | 'url' | 'rawHeaders' | 'source' | 'calledAs' | 'origin'
>;

/** A received delivery. The URL and the fields are built only for schemes that need them. */
export class DeliveryRequest implements SignedRequest {
  readonly body: Buffer;
  readonly #incoming: ReceivedRequest;
  readonly #publicUrl: string | null;
  readonly #parse: () => unknown;
  #fields: { value: unknown } | undefined;

  /** `fields` returns the parsed body. By default, a form or JSON is parsed by its content type. */
  constructor(incoming: ReceivedRequest, body: Buffer, publicUrl: string | null, fields?: () => unknown) {
    this.#incoming = incoming;
    this.#parse = fields ?? (() => parseFields(incoming.rawHeaders, body));
    this.body = body;
    this.#publicUrl = publicUrl;
  }

  /** URL as the sender called it. Behind a proxy that changes host or path, only `gateway.publicUrl` knows it. */
  get url(): string {
    return senderUrl(this.#incoming, this.#publicUrl);
  }

  get method(): string {
    return this.#incoming.method;
  }

  get target(): string {
    return this.#incoming.url;
  }

  get rawHeaders(): readonly string[] {
    return this.#incoming.rawHeaders;
  }

  get source(): string {
    return this.#incoming.source;
  }

  fields(): unknown {
    this.#fields ??= { value: this.#parse() };
    return this.#fields.value;
  }
}

/** Returns the absolute URL of a request as its sender called it. */
export function senderUrl(
  { url, calledAs }: Pick<ReceivedRequest, 'url' | 'calledAs'>,
  publicUrl: string | null,
): string {
  const base =
    publicUrl?.replace(/\/+$/, '') ?? `${calledAs?.proto ?? 'http'}://${calledAs?.host ?? 'localhost'}`;
  return base + url;
}

const FORM = /^\s*application\/x-www-form-urlencoded\s*(?:;|$)/i;

/** Parses a form or JSON. Returns undefined for other bodies. */
function parseFields(rawHeaders: readonly string[], body: Buffer): unknown {
  if (!isUtf8(body)) return undefined;
  const text = body.toString('utf8');
  const type = singleHeader(rawHeaders, 'content-type');
  if (typeof type === 'string' && FORM.test(type)) return formFields(text);
  if (nestsDeeperThan(text, LIMITS.jsonDepth)) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function formFields(text: string): Record<string, string | string[]> {
  const fields: Record<string, string | string[]> = Object.create(null);
  for (const [name, value] of new URLSearchParams(text)) {
    const before = fields[name];
    if (before === undefined) fields[name] = value;
    else if (Array.isArray(before)) before.push(value);
    else fields[name] = [before, value];
  }
  return fields;
}
