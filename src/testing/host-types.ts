import type { CommandResult, ManifestV3, PluginJob, PluginRun } from '../contracts/index.ts';
import type { StubFetch } from '../plugins/index.ts';
import type {
  CallerOptions,
  CommandOptions,
  Decision,
  DeliveryAnswer,
  DeliveryOptions,
  RouteAnswer,
  RouteOptions,
  TestLog,
  ValidatorRequest,
  WebhookOptions,
} from './call-types.ts';
import type {
  CommandId,
  CommandResultOf,
  JobId,
  JobResultOf,
  PluginTypes,
  RouteBodyOf,
  RouteMethod,
  UntypedPlugin,
  WebhookEvent,
  WebhookResultOf,
} from './result-types.ts';

export interface TestHostOptions<Plugin extends PluginTypes = UntypedPlugin> {
  /** Folder of the plugin; default: the working directory. */
  plugin?: string;
  /** The plugin as a typed module. Used only to infer result types. */
  types?: Plugin;
  /** Folders of other plugins, for `ctx.invoke` and dependencies. */
  plugins?: string[];
  /** Value of `ctx.config`. */
  config?: Record<string, unknown>;
  /**
   * `adapters` of the config: a model endpoint, a bucket. By default, objects and vectors are stored in a temporary folder,
   * and there is no model.
   */
  adapters?: Record<string, unknown>;
  /**
   * Replaces the network for `ctx.fetch` calls to hosts allowed by the manifest; other hosts are still refused. Return
   * undefined to use the network.
   */
  fetch?: StubFetch;
  /** Initial time of the clock in epoch milliseconds. Default: 2030-01-01. */
  startAt?: number;
}

/** Results have the types declared by `Plugin`. A type argument, as in `command<Total>('total')`, overrides them. */
export interface TestHost<Plugin extends PluginTypes = UntypedPlugin> extends AsyncDisposable {
  readonly manifest: ManifestV3;
  /** All log lines so far, of the plugin and of the services. */
  readonly logs: readonly TestLog[];
  /** Runs a command like `svc run`, or under another host kind. Rejects with the platform's error if the platform fails it. */
  command<Id extends CommandId<Plugin>>(
    id: Id,
    input?: unknown,
    options?: CommandOptions,
  ): Promise<CommandResult<CommandResultOf<Plugin, Id>>>;
  command<Result = unknown>(
    id: string,
    input?: unknown,
    options?: CommandOptions,
  ): Promise<CommandResult<Result>>;
  job<Id extends JobId<Plugin>>(
    id: Id,
    input?: unknown,
    options?: CallerOptions,
  ): Promise<CommandResult<JobResultOf<Plugin, Id>>>;
  job<Result = unknown>(id: string, input?: unknown, options?: CallerOptions): Promise<CommandResult<Result>>;
  /** Calls a route over HTTP; `path` is relative to the base path. The body has the type of a successful result. */
  route<Method extends RouteMethod<Plugin>, Path extends string>(
    method: Method,
    path: Path,
    options?: RouteOptions,
  ): Promise<RouteAnswer<RouteBodyOf<Plugin, Method, Path>>>;
  route<Body = unknown>(method: string, path: string, options?: RouteOptions): Promise<RouteAnswer<Body>>;
  /** Runs a webhook handler with an authenticated delivery. */
  webhook<Event extends WebhookEvent<Plugin>>(
    event: Event,
    payload: unknown,
    options?: WebhookOptions,
  ): Promise<CommandResult<WebhookResultOf<Plugin, Event>>>;
  webhook<Result = unknown>(
    event: string,
    payload: unknown,
    options?: WebhookOptions,
  ): Promise<CommandResult<Result>>;
  /**
   * Sends a signed event to the real gateway and resolves with the response to the sender. Covers authentication,
   * duplicates, limits and the handler.
   */
  deliver(event: string, payload: unknown, options?: DeliveryOptions): Promise<DeliveryAnswer>;
  /** Calls the plugin's validator of a webhook. Resolves with whether the delivery is authentic. */
  validator(event: string, request: ValidatorRequest): Promise<boolean>;
  /** Starts a registered workflow. The run proceeds in the background, on the clock of the test. */
  workflow(id: string, input?: unknown, options?: CallerOptions): Promise<PluginRun>;
  /** Sends a signal for `ctx.waitForSignal` or a `signal` step, which may wait for it later. */
  signal(id: string, name: string, payload?: unknown, options?: CallerOptions): Promise<void>;
  /** Decides an approval; `step` is the step id: `main.ship`. Default: approved. */
  approve(id: string, step: string, decision?: Decision): Promise<void>;
  /**
   * Resolves when a run has ended, or waits (children included) for an event or a later time. A job resolves when it has ended.
   */
  settled(id: string, options?: CallerOptions): Promise<PluginRun | PluginJob>;
  /** Moves the platform's clock: TTLs expire, calls time out. */
  advance(ms: number): void;
  close(): Promise<void>;
}
