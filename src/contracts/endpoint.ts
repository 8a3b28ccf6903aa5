import type { z } from 'zod';
import type { PlatformCode } from './errors.ts';

export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/**
 * HTTP operation that services mount and clients call. `status` defaults to 200, and `accepted` is the schema of a 202
 * body. `headers` are not validated. The API description lists operations with `tags`, unless `hidden` is set. @spec
 * Health, metrics, specification (visibility)
 */
export interface Endpoint<
  Params extends z.ZodType = z.ZodType,
  Query extends z.ZodType = z.ZodType,
  Body extends z.ZodType = z.ZodType,
  Reply extends z.ZodType = z.ZodType,
> {
  readonly method: HttpMethod;
  readonly path: string;
  readonly summary?: string;
  readonly tags?: readonly string[];
  readonly hidden?: boolean;
  readonly status?: number;
  readonly headers?: z.ZodObject;
  readonly params?: Params;
  readonly query?: Query;
  readonly body?: Body;
  readonly reply: Reply;
  readonly accepted?: z.ZodType;
  readonly errors?: readonly PlatformCode[];
}

export function endpoint<
  Params extends z.ZodType = z.ZodUndefined,
  Query extends z.ZodType = z.ZodUndefined,
  Body extends z.ZodType = z.ZodUndefined,
  Reply extends z.ZodType = z.ZodType,
>(definition: Endpoint<Params, Query, Body, Reply>): Endpoint<Params, Query, Body, Reply> {
  return definition;
}

/** Validated request parts, as passed to a handler. */
export interface Validated<E extends Endpoint> {
  params: E extends Endpoint<infer P, z.ZodType, z.ZodType, z.ZodType> ? z.output<P> : never;
  query: E extends Endpoint<z.ZodType, infer Q, z.ZodType, z.ZodType> ? z.output<Q> : never;
  body: E extends Endpoint<z.ZodType, z.ZodType, infer B, z.ZodType> ? z.output<B> : never;
}

export type ReplyOf<E extends Endpoint> =
  E extends Endpoint<z.ZodType, z.ZodType, z.ZodType, infer R> ? z.output<R> : never;

/** Return type of a handler: the reply before the schema adds default values. */
export type ReplyInput<E extends Endpoint> =
  E extends Endpoint<z.ZodType, z.ZodType, z.ZodType, infer R> ? z.input<R> : never;

/** The request parts (`params`, `query` and `body`) that a caller must pass to the endpoint. */
export type CallInput<E extends Endpoint> =
  E extends Endpoint<infer P, infer Q, infer B, z.ZodType>
    ? (undefined extends z.input<P> ? { params?: z.input<P> } : { params: z.input<P> }) &
        (undefined extends z.input<Q> ? { query?: z.input<Q> } : { query?: z.input<Q> }) &
        (undefined extends z.input<B> ? { body?: z.input<B> } : { body: z.input<B> })
    : never;
