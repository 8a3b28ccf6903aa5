import type { CommandResult, ManifestV3, PluginJob, PluginRun } from '../contracts/index.ts';
import type { StubFetch } from '../plugins/index.ts';
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
} from './types.ts';

export interface TestHostOptions<Plugin extends PluginTypes = UntypedPlugin> {
  /** The plugin's folder; default: the working directory, which is where `npm test` starts. */
  plugin?: string;
  /** The same plugin as a typed module, which results get their types from. Nothing else of it is used. */
  types?: Plugin;
  /** Folders of other plugins, for `ctx.invoke` and dependencies. */
  plugins?: string[];
  /** What the plugin finds as `ctx.config`. */
  config?: Record<string, unknown>;
  /**
   * `adapters` of the config: a model's endpoint, a bucket. Objects and vectors are kept in a folder that goes with the
   * host unless told otherwise; a model there is only when one is named.
   */
  adapters?: Record<string, unknown>;
  /**
   * Answers `ctx.fetch` instead of the network, for hosts that the manifest allows; others are refused as ever. Return
   * undefined to have the network answer.
   */
  fetch?: StubFetch;
  /** Where the clock stands at first, in epoch milliseconds. Default: 2030-01-01. */
  startAt?: number;
}

/** Results have the types that `Plugin` declares. A type argument, as in `command<Total>('total')`, says otherwise. */
export interface TestHost<Plugin extends PluginTypes = UntypedPlugin> extends AsyncDisposable {
  readonly manifest: ManifestV3;
  /** Every line so far, of the plugin and of the services. */
  readonly logs: readonly TestLog[];
  /** Runs a command as `svc run` does, or as another host. Rejects with the platform's code where the platform fails it. */
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
  /** Calls a route over HTTP; `path` is the route's own, below the base path. The body has the type of a success. */
  route<Method extends RouteMethod<Plugin>, Path extends string>(
    method: Method,
    path: Path,
    options?: RouteOptions,
  ): Promise<RouteAnswer<RouteBodyOf<Plugin, Method, Path>>>;
  route<Body = unknown>(method: string, path: string, options?: RouteOptions): Promise<RouteAnswer<Body>>;
  /** Runs a webhook's handler with a delivery that was let in. */
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
   * Delivers an event to the real gateway, signed with the secret of the webhook, and resolves with what its sender is
   * answered: authentication, duplicates, limits and the handler included.
   */
  deliver(event: string, payload: unknown, options?: DeliveryOptions): Promise<DeliveryAnswer>;
  /** Asks the plugin's own validator of a webhook. Resolves with whether the delivery counts as authentic. */
  validator(event: string, request: ValidatorRequest): Promise<boolean>;
  /** Starts a registered workflow; the run goes on by itself, on the clock of the test. */
  workflow(id: string, input?: unknown, options?: CallerOptions): Promise<PluginRun>;
  /** Sends what `ctx.waitForSignal`, or a `signal` step, waits for or will wait for. */
  signal(id: string, name: string, payload?: unknown, options?: CallerOptions): Promise<void>;
  /** Decides an approval that the run waits for; `step` as in the run's steps: `main.ship`. Default: approved. */
  approve(id: string, step: string, decision?: Decision): Promise<void>;
  /**
   * Resolves with a run once it has ended or waits for something that is not there yet, its children included; for a
   * job, once it has ended.
   */
  settled(id: string, options?: CallerOptions): Promise<PluginRun | PluginJob>;
  /** Moves the platform's time: what was kept for a while expires, calls under way time out. */
  advance(ms: number): void;
  close(): Promise<void>;
}
