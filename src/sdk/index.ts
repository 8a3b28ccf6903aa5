/**
 * What plugin authors import as `svc-platform/sdk`. It loads zod and nothing else, since every plugin
 * process pays for it at its start. @spec docs/plugins.md
 */
import type {
  CommandResult,
  HandlerDefinition,
  HandlerKind,
  HandlerReturn,
  PluginContextV3,
  PluginManifest,
  ReturnedResult,
  RouteContext,
  SignalSchemas,
  StandardSchema,
  StepOptions,
  ValidatorContext,
  WebhookContext,
  WorkflowContext,
} from '../contracts/index.ts';
import { STREAM_RESULT, type StreamResult } from '../contracts/stream-result.ts';

export { z } from 'zod';
export { CancelledError } from '../contracts/cancelled-error.ts';
export type {
  Cancelled,
  CommandResult,
  EmbeddingsAccess,
  EmbeddingsReply,
  EntryOptions,
  HandlerDefinition,
  HandlerReturn,
  JobOptions,
  JobsAccess,
  KeyValueAccess,
  LlmAccess,
  LlmMessage,
  LlmOptions,
  LlmPiece,
  LlmReply,
  LlmTool,
  LlmToolCall,
  LlmToolReply,
  LlmUsage,
  PluginAnalytics,
  PluginContextV3,
  PluginJob,
  PluginLog,
  PluginManifest,
  PluginRun,
  PluginUser,
  PluginWebhook,
  RouteContext,
  SleepUntil,
  StandardSchema,
  StartOptions,
  StepInfo,
  StepOptions,
  StorageAccess,
  StoredObject,
  ValidatorContext,
  VectorItem,
  VectorMatch,
  VectorMetadata,
  VectorStoreAccess,
  WebhookContext,
  WebhooksAccess,
  WorkflowContext,
  WorkflowStepError,
  WorkflowsAccess,
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

type AnySchema = StandardSchema | undefined;

/** The parts every definition has; `input` and `output` are zod schemas (or any Standard Schema). */
interface Spec<Context, In, Out, Returned> {
  input?: In;
  output?: Out;
  execute: (ctx: Context, input: InputOf<In>) => Awaitable<Returned>;
}

/** What callers of a handler get: what its output schema makes of the result; without one, the result itself. */
type GivenResult<Out, Returned> =
  Out extends StandardSchema<infer Result> ? Result : ReturnedResult<Returned>;

/** Takes a handler as a function, or as an object with `execute` and schemas that type it. */
interface Define<Context, More = unknown> {
  <Input = unknown, Returned = unknown>(
    execute: (ctx: Context, input: Input) => Awaitable<Returned>,
  ): HandlerDefinition<Context, Input, ReturnedResult<Returned>>;
  <
    In extends AnySchema = undefined,
    Out extends AnySchema = undefined,
    Returned extends HandlerReturn<ResultOf<Out>> = HandlerReturn<ResultOf<Out>>,
  >(
    spec: Spec<Context, In, Out, Returned> & More,
  ): HandlerDefinition<Context, InputOf<In>, GivenResult<Out, Returned>>;
}

function define(kind: HandlerKind, handler: object): object {
  return { ...(typeof handler === 'function' ? { execute: handler } : handler), kind };
}

function definer<Context, More = unknown>(kind: HandlerKind): Define<Context, More> {
  return ((handler: object) => define(kind, handler)) as Define<Context, More>;
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** A command of the command line; workflows run it too, and other plugins through `ctx.invoke`. */
export const defineCommand: Define<PluginContextV3> = definer('command');

/** A REST route's handler; with `method` it refuses to run under another one. @spec Plugin routes */
export const defineRoute: Define<RouteContext, { method?: Method }> = definer('route');

/** A webhook's handler; its input is the parsed body. @spec Webhook handler context */
export const defineWebhook: Define<WebhookContext> = definer('webhook');

/** A background job's handler. */
export const defineJob: Define<PluginContextV3> = definer('job');

interface WorkflowSpec<In, Signals extends SignalSchemas> {
  /** As the manifest's entry names it. */
  id: string;
  input?: In;
  /** Schemas of what `ctx.waitForSignal` gets, by the name of the signal; a payload that does not fit is refused with 400. */
  signals?: Signals;
  /** For every `ctx.step` that does not say otherwise; `retry` and `timeoutMs` for `ctx.invoke` too. */
  steps?: StepOptions;
  run: (ctx: WorkflowContext<Signals>, input: InputOf<In>) => Awaitable<HandlerReturn<unknown>>;
}

/**
 * A workflow written as a function, for `workflows: [{id, handler}]` of the manifest. It runs from its first line each time
 * its run is taken up again; steps that have ended are not run again. @spec docs/workflows.md "Workflows in code"
 */
export function defineWorkflow<
  In extends AnySchema = undefined,
  Signals extends SignalSchemas = Record<never, never>,
>({ run, ...spec }: WorkflowSpec<In, Signals>): HandlerDefinition<WorkflowContext, InputOf<In>> {
  return define('workflow', { ...spec, execute: run }) as HandlerDefinition<WorkflowContext, InputOf<In>>;
}

/** What a webhook validator is given: headers in lower case, the body as base64, the secret. */
export interface ValidatorInput {
  headers: Record<string, string>;
  rawBody: string;
  secret: string;
}

type Validate = (ctx: ValidatorContext, input: ValidatorInput) => Awaitable<{ valid: boolean }>;

/** Decides whether a delivery is genuine; a throw counts as `{valid: false}`. @spec WebhookAuthConfig: custom */
export function defineValidator(
  handler: Validate | { execute: Validate },
): HandlerDefinition<ValidatorContext, ValidatorInput> {
  return define('validator', handler) as HandlerDefinition<ValidatorContext, ValidatorInput>;
}

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
