/**
 * Public API for plugins (`svc-platform/sdk`). Only zod is loaded, because every import adds to the startup time of
 * each plugin process. @spec docs/plugins.md
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
import type {
  AskResult,
  ClientAnswers,
  ClientRequest,
  ContentBlock,
  ContentResult,
} from '../contracts/mcp-content.ts';
import { STREAM_RESULT, type StreamResult } from '../contracts/stream-result.ts';

export { z } from 'zod';
export { CancelledError } from '../contracts/cancelled-error.ts';
export type {
  Cancelled,
  CommandResult,
  ConnectionsAccess,
  EmbeddingsAccess,
  EmbeddingsReply,
  Emit,
  EmitOf,
  EmitOptions,
  EmittedMessage,
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
  WebhookFile,
  WebhookReply,
  WebhooksAccess,
  WorkflowContext,
  WorkflowStepError,
  WorkflowsAccess,
} from '../contracts/index.ts';
export type {
  AskResult,
  ClientAnswers,
  ClientRequest,
  ContentBlock,
  ContentResult,
} from '../contracts/mcp-content.ts';
export type { StreamResult } from '../contracts/stream-result.ts';

type Awaitable<Value> = Value | Promise<Value>;

/** Input type of a handler: the type that its schema's parser returns, or `unknown` without a schema. */
export type InputOf<Schema> = Schema extends StandardSchema<infer Output> ? Output : unknown;

/** Type that a handler with an output schema must return: the type that the schema accepts. */
export type ResultOf<Schema> = Schema extends {
  readonly '~standard': { readonly types?: { readonly input: infer Input } | undefined };
}
  ? Input
  : unknown;

type AnySchema = StandardSchema | undefined;

/** Fields common to all handler definitions. `input` and `output` accept zod and any other Standard Schema. */
interface Spec<Context, In, Out, Returned> {
  input?: In;
  output?: Out;
  execute: (ctx: Context, input: InputOf<In>) => Awaitable<Returned>;
}

/**
 * Result type for callers. With an output schema, this is the type that the schema's parser returns. Otherwise, this is
 * the return type of the handler.
 */
type GivenResult<Out, Returned> =
  Out extends StandardSchema<infer Result> ? Result : ReturnedResult<Returned>;

/**
 * Accepts a handler as a function, or as an object with `execute` and schemas. The schemas determine the parameter
 * types of `execute`.
 */
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

/** Defines a command. Commands can run in the CLI, as steps of workflows, and from other plugins with `ctx.invoke`. */
export const defineCommand: Define<PluginContextV3> = definer('command');

/** Defines a route handler. If `method` is set, requests with other methods are refused. @spec Plugin routes */
export const defineRoute: Define<RouteContext, { method?: Method }> = definer('route');

/** Defines a webhook handler. Its input is the parsed body of the delivery. @spec Webhook handler context */
export const defineWebhook: Define<WebhookContext> = definer('webhook');

/** Defines the handler of a background job. */
export const defineJob: Define<PluginContextV3> = definer('job');

interface WorkflowSpec<In, Signals extends SignalSchemas> {
  /** Id of the workflow in the manifest. */
  id: string;
  input?: In;
  /** Payload schemas by signal name. An invalid payload is rejected with 400. */
  signals?: Signals;
  /** Default options of `ctx.step`. `retry` and `timeoutMs` also apply to `ctx.invoke`. */
  steps?: StepOptions;
  run: (ctx: WorkflowContext<Signals>, input: InputOf<In>) => Awaitable<HandlerReturn<unknown>>;
}

/**
 * Defines a workflow as a function. When a run of the workflow resumes, the function is replayed from its start.
 * Finished steps do not run again. @spec docs/workflows.md "Workflows in code"
 */
export function defineWorkflow<
  In extends AnySchema = undefined,
  Signals extends SignalSchemas = Record<never, never>,
>({ run, ...spec }: WorkflowSpec<In, Signals>): HandlerDefinition<WorkflowContext, InputOf<In>> {
  return define('workflow', { ...spec, execute: run }) as HandlerDefinition<WorkflowContext, InputOf<In>>;
}

/** Input of a webhook validator. Header names are in lower case, and `rawBody` is encoded as base64. */
export interface ValidatorInput {
  headers: Record<string, string>;
  rawBody: string;
  secret: string;
}

type Validate = (ctx: ValidatorContext, input: ValidatorInput) => Awaitable<{ valid: boolean }>;

/**
 * Defines a validator that authenticates webhook deliveries. A delivery is rejected if the validator throws. @spec
 * WebhookAuthConfig: custom
 */
export function defineValidator(
  handler: Validate | { execute: Validate },
): HandlerDefinition<ValidatorContext, ValidatorInput> {
  return define('validator', handler) as HandlerDefinition<ValidatorContext, ValidatorInput>;
}

/**
 * Checks the types of a manifest module, whose default export is the manifest. `package.json` contains the path of the
 * module in `"svc"`. The module runs in the sandbox without permissions.
 */
export function defineManifest<const Manifest extends PluginManifest>(manifest: Manifest): Manifest {
  return manifest;
}

export type StreamSource = StreamResult['source'];

/**
 * Result of a route that streams bytes or text instead of JSON. The source is read only as fast as the caller reads. If
 * the caller disconnects, `ctx.signal` aborts and the stream ends.
 */
export function stream(source: StreamSource, options: { contentType?: string } = {}): StreamResult {
  return { [STREAM_RESULT]: true, contentType: options.contentType ?? 'application/octet-stream', source };
}

/** An event of a `text/event-stream`. `data` is sent as JSON unless it is a string. */
export interface ServerSentEvent {
  data: unknown;
  event?: string;
  id?: string;
  /** Reconnection delay of the client in ms. */
  retry?: number;
}

/** Streams server-sent events, as read by `EventSource` in browsers. */
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

/** Replaces line breaks, because a value with line breaks could inject further fields into the event. */
function oneLine(text: string): string {
  return text.replace(/[\r\n\0]/g, ' ');
}

/** Result of a command that MCP clients get as text, images, sound or files. @spec docs/mcp.md */
export function content(...blocks: ContentBlock[]): ContentResult {
  return { $content: blocks };
}

/**
 * Result of a command that first needs answers of its MCP client. The command then runs again with the same input:
 * `clientAnswers(ctx)` has the answers and `state`. The client can read `state`, but not change it.
 */
export function askClient(requests: Record<string, ClientRequest>, state?: unknown): AskResult {
  return { $ask: { requests, ...(state === undefined ? {} : { state: state as never }) } };
}

/** Returns the answers of the MCP client that `askClient` has asked for. They are untrusted. */
export function clientAnswers({ hostContext }: Pick<PluginContextV3, 'hostContext'>): ClientAnswers {
  const { mcp } = hostContext as { mcp?: ClientAnswers };
  return mcp ?? { answers: {}, supported: [] };
}

/** Creates a successful result. @spec Command result */
export function ok<Result>(result?: Result, meta?: Record<string, unknown>): CommandResult<Result> {
  return { exitCode: 0, ...(result === undefined ? {} : { result }), ...(meta ? { meta } : {}) };
}

/**
 * Creates a failed result. In a route handler, `code` is a code from the `errors` of the route. @spec Command result
 */
export function fail(code: string, message: string, details?: Record<string, unknown>): CommandResult<never> {
  return { exitCode: 1, error: { code, message, ...(details ? { details } : {}) } };
}
