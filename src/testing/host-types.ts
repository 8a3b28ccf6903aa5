import type { CommandResult, ManifestV3, PluginJob, PluginRun, WebhookFixture } from '../contracts/index.ts';
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
import type { ReplayOptions } from './fixtures.ts';
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
  /** Folder of the plugin under test. The default is the working directory. */
  plugin?: string;
  /** Manifest and modules of the plugin. Only the type of this value is used, to infer the types of results. */
  types?: Plugin;
  /** Folders of other plugins that the plugin under test calls with `ctx.invoke` or depends on. */
  plugins?: string[];
  config?: Record<string, unknown>;
  /**
   * The `adapters` section of the config. By default, objects and vectors are stored in a temporary folder, and no
   * model is configured.
   */
  adapters?: Record<string, unknown>;
  /**
   * Replaces the network for `ctx.fetch`. Requests to hosts that the manifest does not allow fail. If the function
   * returns undefined, the request uses the network.
   */
  fetch?: StubFetch;
  /** Secrets of the tenant `default` by name, for `ctx.secrets`. */
  secrets?: Record<string, string>;
  /** Access tokens of connections of the tenant `default` by name, for `ctx.connections`. */
  connections?: Record<string, string>;
  /** Initial time of the clock in epoch ms. The default is the start of 2030. */
  startAt?: number;
}

/** A message that a handler emitted. */
export interface EmittedRecord {
  id: string;
  type: string;
  data: unknown;
  application: string | null;
}

/**
 * Test host of a plugin, with result types from `Plugin`. A type argument overrides the type of a result, as in
 * `command<Total>('total')`.
 */
export interface TestHost<Plugin extends PluginTypes = UntypedPlugin> extends AsyncDisposable {
  readonly manifest: ManifestV3;
  /** All log lines of the plugin and of the services so far. */
  readonly logs: readonly TestLog[];
  /** Runs a command in the same way as `svc run` or a workflow step. Rejects with errors of the platform. */
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
  /** Sets a secret for `ctx.secrets`, by default of the tenant `default`. Values have at least 8 characters. */
  setSecret(name: string, value: string, tenantId?: string): Promise<void>;
  /**
   * Calls a route of the plugin over HTTP. `path` is relative to the plugin's base path. `body` has the type of a
   * successful response.
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
   * Sends a signed event through a real gateway, including authentication, deduplication and limits. Resolves with the
   * response that the sender receives.
   */
  deliver(event: string, payload: unknown, options?: DeliveryOptions): Promise<DeliveryAnswer>;
  /**
   * Delivers a fixture, which `svc webhooks fixture` saved, as `deliver` does: the recorded bytes and headers with a new
   * signature. `fixture` is the path of its file, or its content.
   */
  replay(fixture: string | WebhookFixture, options?: ReplayOptions): Promise<DeliveryAnswer>;
  /** Calls a validator of the plugin. Resolves with true if the validator accepts the delivery. */
  validator(event: string, request: ValidatorRequest): Promise<boolean>;
  /** Starts a registered workflow. The run continues in the background. Timers of the run use the test's clock. */
  workflow(id: string, input?: unknown, options?: CallerOptions): Promise<PluginRun>;
  /**
   * Sends a signal for `ctx.waitForSignal` or a `signal` step. The signal can be sent before the step starts to wait.
   */
  signal(id: string, name: string, payload?: unknown, options?: CallerOptions): Promise<void>;
  /** Approves a step, or rejects it with `approved: false`. `step` is the id of the step, such as `main.ship`. */
  approve(id: string, step: string, decision?: Decision): Promise<void>;
  /**
   * Resolves when a run or job has ended. Also resolves when a run and its child runs wait for events or for a later
   * time.
   */
  settled(id: string, options?: CallerOptions): Promise<PluginRun | PluginJob>;
  /** Returns the messages that handlers have emitted for a tenant, oldest first. They are not sent anywhere. */
  emitted(options?: Pick<CallerOptions, 'tenantId'>): Promise<EmittedRecord[]>;
  /** Moves the test's clock forward, so that TTLs and timeouts expire. */
  advance(ms: number): void;
  close(): Promise<void>;
}
