import type { CallInput, Endpoint, ReplyOf } from '../../contracts/endpoint.ts';
import type * as contracts from '../../contracts/index.ts';
import { foreignNamespace } from '../app/namespace.ts';
import { onSignedOut, portalToken, session } from '../app/session-state.ts';
import { endpointOf } from './endpoint-table.ts';

type Contracts = typeof contracts;

/** Name of an endpoint in the contracts. */
export type EndpointName = {
  [Name in keyof Contracts]: Contracts[Name] extends Endpoint ? Name : never;
}[keyof Contracts];

type EndpointOf<Name extends EndpointName> = Extract<Contracts[Name], Endpoint>;
export type Input<Name extends EndpointName> = CallInput<EndpointOf<Name>>;
export type Reply<Name extends EndpointName> = ReplyOf<EndpointOf<Name>>;

/** Error answer of the API. `status` is 0 if the gateway could not be reached. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(
    status: number,
    { code, message, details = {} }: { code: string; message: string; details?: Record<string, unknown> },
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

interface Parts {
  params?: Record<string, string | number>;
  query?: Record<string, string | number | boolean | string[] | undefined>;
  body?: unknown;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
  /** Whether a list covers all namespaces, also while an administrator acts in another one. */
  inAllNamespaces?: boolean;
}

/** Calls an endpoint with the session of this browser, or with the token of a portal. Throws ApiError. */
export async function call<Name extends EndpointName>(
  name: Name,
  input: Input<Name>,
  { signal, inAllNamespaces = false }: CallOptions = {},
): Promise<Reply<Name>> {
  const { method, url } = target(name, input as Parts, inAllNamespaces);
  const { body } = input as Parts;
  const response = await send(url, {
    method,
    ...(signal ? { signal } : {}),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return (await response.json()) as Reply<Name>;
}

/** Opens a stream of server-sent events. `lastEventId` resumes a stream. */
export function open<Name extends EndpointName>(
  name: Name,
  input: Input<Name>,
  { signal, lastEventId }: { signal: AbortSignal; lastEventId?: string | undefined },
): Promise<Response> {
  const { url } = target(name, input as Parts);
  return send(url, { signal, headers: lastEventId === undefined ? {} : { 'last-event-id': lastEventId } });
}

function target(
  name: string,
  { params = {}, query = {} }: Parts,
  inAllNamespaces = false,
): { method: string; url: string } {
  const [method, path, namespaceParameter] = endpointOf(name);
  const filled = path.replace(/:(\w+)/g, (_match, key: string) => encodeURIComponent(String(params[key])));
  const search = new URLSearchParams();
  // Without it, these lists show all namespaces to administrators.
  const namespaceId = inAllNamespaces ? undefined : foreignNamespace();
  if (namespaceParameter && namespaceId !== undefined) search.set(namespaceParameter, namespaceId);
  for (const [key, value] of Object.entries(query)) {
    if (value === undefined) continue;
    search.delete(key);
    for (const each of [value].flat()) search.append(key, String(each));
  }
  return { method, url: search.size > 0 ? `${filled}?${search}` : filled };
}

async function send(url: string, init: RequestInit): Promise<Response> {
  const token = portalToken.value;
  // A portal must not act with the session of a person who opens its link.
  const credentials = token === undefined ? 'same-origin' : 'omit';
  const response = await fetch(url, { ...init, credentials, headers: headersOf(init) }).catch(
    (error: unknown) => {
      if (init.signal?.aborted) throw error;
      throw new ApiError(0, { code: 'UNREACHABLE', message: 'The gateway does not answer. Is svc running?' });
    },
  );
  if (response.ok) return response;
  const error = await errorOf(response);
  if (error.status === 401 && (session.value || token)) onSignedOut();
  throw error;
}

function headersOf({ body, headers }: RequestInit): Headers {
  const all = new Headers(headers);
  if (body !== undefined && body !== null) all.set('content-type', 'application/json');
  if (portalToken.value) all.set('authorization', `Bearer ${portalToken.value}`);
  if (session.value) all.set('x-svc-csrf', session.value.csrfToken);
  const namespaceId = foreignNamespace();
  if (namespaceId !== undefined) all.set('x-svc-namespace', namespaceId);
  return all;
}

async function errorOf(response: Response): Promise<ApiError> {
  const text = await response.text();
  try {
    return new ApiError(response.status, JSON.parse(text).error);
  } catch {
    const message = `The gateway answered ${response.status} without an explanation.`;
    return new ApiError(response.status, { code: 'UNKNOWN', message });
  }
}
