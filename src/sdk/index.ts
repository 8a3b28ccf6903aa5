/**
 * What plugin authors import as `svc-platform/sdk`. It loads zod and nothing else, since every plugin
 * process pays for it at its start. @spec docs/plugins.md
 */
import type { z } from 'zod';
import type {
  CommandResult,
  HandlerDefinition,
  HandlerKind,
  HandlerReturn,
  ManifestV3,
  PluginContextV3,
  RouteContext,
  StandardSchema,
  WebhookContext,
} from '../contracts/index.ts';
import { STREAM_RESULT, type StreamResult } from '../contracts/stream-result.ts';

export { z } from 'zod';
export type {
  CommandResult,
  EntryOptions,
  HandlerDefinition,
  HandlerReturn,
  KeyValueAccess,
  PluginAnalytics,
  PluginContextV3,
  PluginLog,
  PluginUser,
  RouteContext,
  StandardSchema,
  WebhookContext,
} from '../contracts/index.ts';
export type { StreamResult } from '../contracts/stream-result.ts';

type Awaitable<Value> = Value | Promise<Value>;

/** What a handler is given once its input schema has read it; without a schema, whatever the caller sent. */
export type InputOf<Schema> = Schema extends StandardSchema<infer Output> ? Output : unknown;

/** What a handler may return where an output schema checks it: the schema's own input. */
export type ResultOf<Schema> = Schema extends {
  readonly '~standard': { readonly types?: { readonly input: infer Input } | undefined };
}
  ? Input
  : unknown;

type Execute<Context, Input, Result> = (ctx: Context, input: Input) => Awaitable<HandlerReturn<Result>>;

/** The parts every definition has; `input` and `output` are zod schemas (or any Standard Schema). */
interface Spec<Context, In, Out> {
  input?: In;
  output?: Out;
  execute: Execute<Context, InputOf<In>, ResultOf<Out>>;
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
interface RouteSpec<In, Out> extends Spec<RouteContext, In, Out> {
  method?: Method;
}
type AnySchema = StandardSchema | undefined;

/** Both spellings of one definition: a function, or an object with `execute`. */
function define<Context, Input>(kind: HandlerKind, handler: unknown): HandlerDefinition<Context, Input> {
  const spec = typeof handler === 'function' ? { execute: handler } : (handler as object);
  return { ...spec, kind } as HandlerDefinition<Context, Input>;
}

/** A command of the command line; workflows run it too, and other plugins through `ctx.invoke`. */
export function defineCommand<Input = unknown>(
  execute: Execute<PluginContextV3, Input, unknown>,
): HandlerDefinition<PluginContextV3, Input>;
export function defineCommand<In extends AnySchema = undefined, Out extends AnySchema = undefined>(
  spec: Spec<PluginContextV3, In, Out>,
): HandlerDefinition<PluginContextV3, InputOf<In>>;
export function defineCommand(handler: unknown): HandlerDefinition<PluginContextV3, never> {
  return define('command', handler);
}

/** A REST route's handler; with `method` it refuses to run under another one. @spec Plugin routes */
export function defineRoute<Input = unknown>(
  execute: Execute<RouteContext, Input, unknown>,
): HandlerDefinition<RouteContext, Input>;
export function defineRoute<In extends AnySchema = undefined, Out extends AnySchema = undefined>(
  spec: RouteSpec<In, Out>,
): HandlerDefinition<RouteContext, InputOf<In>>;
export function defineRoute(handler: unknown): HandlerDefinition<RouteContext, never> {
  return define('route', handler);
}

/** A webhook's handler; its input is the parsed body. @spec Webhook handler context */
export function defineWebhook<Payload = unknown>(
  execute: Execute<WebhookContext, Payload, unknown>,
): HandlerDefinition<WebhookContext, Payload>;
export function defineWebhook<In extends AnySchema = undefined, Out extends AnySchema = undefined>(
  spec: Spec<WebhookContext, In, Out>,
): HandlerDefinition<WebhookContext, InputOf<In>>;
export function defineWebhook(handler: unknown): HandlerDefinition<WebhookContext, never> {
  return define('webhook', handler);
}

/** A background job's handler. */
export function defineJob<Input = unknown>(
  execute: Execute<PluginContextV3, Input, unknown>,
): HandlerDefinition<PluginContextV3, Input>;
export function defineJob<In extends AnySchema = undefined, Out extends AnySchema = undefined>(
  spec: Spec<PluginContextV3, In, Out>,
): HandlerDefinition<PluginContextV3, InputOf<In>>;
export function defineJob(handler: unknown): HandlerDefinition<PluginContextV3, never> {
  return define('job', handler);
}

/** What a webhook validator is given: headers in lower case, the body as base64, the secret. */
export interface ValidatorInput {
  headers: Record<string, string>;
  rawBody: string;
  secret: string;
}

type Validate = (ctx: PluginContextV3, input: ValidatorInput) => Awaitable<{ valid: boolean }>;

/** Decides whether a delivery is genuine; a throw counts as `{valid: false}`. @spec WebhookAuthConfig: custom */
export function defineValidator(
  handler: Validate | { execute: Validate },
): HandlerDefinition<PluginContextV3, ValidatorInput> {
  return define('validator', handler);
}

/** A manifest as an author writes it: what has a default may be left out. */
export type PluginManifest = Omit<z.input<typeof ManifestV3>, '$schema'>;

/**
 * A manifest as a module, for those who would rather write code than JSON: `package.json` names the module
 * under `"svc"`, its default export is the manifest. It runs in the sandbox with no permission at all.
 */
export function defineManifest<const Manifest extends PluginManifest>(manifest: Manifest): Manifest {
  return manifest;
}

/** Pieces of a stream, as they come. */
export type StreamSource = StreamResult['source'];

/**
 * What a route returns to answer with bytes or text as they come, instead of JSON. The source is asked for no more
 * than the caller takes; it ends with the source, or when the caller leaves (`ctx.signal`).
 */
export function stream(source: StreamSource, options: { contentType?: string } = {}): StreamResult {
  return { [STREAM_RESULT]: true, contentType: options.contentType ?? 'application/octet-stream', source };
}

/** One event of a `text/event-stream`; `data` that is no text becomes JSON. */
export interface ServerSentEvent {
  data: unknown;
  event?: string;
  id?: string;
  /** Milliseconds until a client that lost the connection comes again. */
  retry?: number;
}

/** The same for server-sent events, as browsers' `EventSource` reads them. */
export function eventStream(
  events: AsyncIterable<ServerSentEvent> | Iterable<ServerSentEvent>,
): StreamResult {
  return stream(encodeEvents(events), { contentType: 'text/event-stream' });
}

async function* encodeEvents(
  events: AsyncIterable<ServerSentEvent> | Iterable<ServerSentEvent>,
): AsyncGenerator<string> {
  for await (const { data, event, id, retry } of events) {
    const text = typeof data === 'string' ? data : JSON.stringify(data ?? null);
    const lines = [
      ...(event === undefined ? [] : [`event: ${oneLine(event)}`]),
      ...(id === undefined ? [] : [`id: ${oneLine(id)}`]),
      ...(retry === undefined ? [] : [`retry: ${Math.round(retry)}`]),
      ...text.split(/\r\n|\r|\n/).map((line) => `data: ${line}`),
    ];
    yield `${lines.join('\n')}\n\n`;
  }
}

/** A line break would end the field, and begin one of whoever chose the text. */
function oneLine(text: string): string {
  return text.replace(/[\r\n\0]/g, ' ');
}

/** A success. @spec Command result */
export function ok<Result>(result?: Result, meta?: Record<string, unknown>): CommandResult<Result> {
  return { exitCode: 0, ...(result === undefined ? {} : { result }), ...(meta ? { meta } : {}) };
}

/** A failure that the plugin declares: `code` is one of the route's `errors`. @spec Command result */
export function fail(code: string, message: string, details?: Record<string, unknown>): CommandResult<never> {
  return { exitCode: 1, error: { code, message, ...(details ? { details } : {}) } };
}
