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
  /** Folder of the plugin. The default is the working directory. */
  plugin?: string;
  /** The plugin as a typed module. Only its type is used, to infer the types of results. */
  types?: Plugin;
  /** Folders of other plugins, for `ctx.invoke` and dependencies. */
  plugins?: string[];
  config?: Record<string, unknown>;
  /**
   * The `adapters` section of the config, for example a model endpoint. By default, objects and vectors are in a
   * temporary folder, and there is no model.
   */
  adapters?: Record<string, unknown>;
  /**
   * Replaces the network for `ctx.fetch`. Hosts that the manifest does not allow are still refused. If the function
   * returns undefined, the call uses the network.
   */
  fetch?: StubFetch;
  /** Initial time of the clock in epoch ms. The default is the start of 2030. */
  startAt?: number;
}

/**
 * Test host of a plugin. Results have the types that `Plugin` declares, unless a type argument overrides them, as in
 * `command<Total>('total')`.
 */
export interface TestHost<Plugin extends PluginTypes = UntypedPlugin> extends AsyncDisposable {
  readonly manifest: ManifestV3;
  /** All log lines of the plugin and of the services so far. */
  readonly logs: readonly TestLog[];
  /** Runs a command as `svc run` does, or as a workflow step does. Errors of the platform reject the promise. */
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
  /**
   * Calls a route of the plugin over HTTP. `path` is relative to the base path. The type of `body` is that of a
   * successful result.
   */
  route<Method extends RouteMethod<Plugin>, Path extends string>(
    method: Method,
    path: Path,
    options?: RouteOptions,
  ): Promise<RouteAnswer<RouteBodyOf<Plugin, Method, Path>>>;
  route<Body = unknown>(method: string, path: string, options?: RouteOptions): Promise<RouteAnswer<Body>>;
  /** Runs the handler of a webhook directly, without the gateway. */
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
   * Sends a signed event through a real gateway and resolves with the response that the sender gets. Authentication,
   * duplicates and limits are included.
   */
  deliver(event: string, payload: unknown, options?: DeliveryOptions): Promise<DeliveryAnswer>;
  /** Calls a validator of the plugin. Resolves with true if it accepts the delivery. */
  validator(event: string, request: ValidatorRequest): Promise<boolean>;
  /** Starts a registered workflow. The run continues in the background, and its timers use the clock of the test. */
  workflow(id: string, input?: unknown, options?: CallerOptions): Promise<PluginRun>;
  /** Sends a signal for `ctx.waitForSignal` or a `signal` step. The step may start to wait later. */
  signal(id: string, name: string, payload?: unknown, options?: CallerOptions): Promise<void>;
  /** Approves a step, or rejects it with `approved: false`. `step` is the id of the step, such as `main.ship`. */
  approve(id: string, step: string, decision?: Decision): Promise<void>;
  /**
   * Resolves when a run has ended, or when it and its children wait for events or for a later time. A job resolves when
   * it has ended.
   */
  settled(id: string, options?: CallerOptions): Promise<PluginRun | PluginJob>;
  /** Moves the clock of the platform forward, so that TTLs and timeouts expire. */
  advance(ms: number): void;
  close(): Promise<void>;
}
