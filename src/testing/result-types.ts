import type { ReturnedResult } from '../contracts/index.ts';
import type { StreamResult } from '../contracts/stream-result.ts';

interface NamedHandler {
  readonly id: string;
  readonly handler: string;
}

interface RouteHandler {
  readonly method: string;
  readonly path: string;
  readonly handler: string;
}

/** The types of a plugin: its manifest with literal names, as `defineManifest` returns it, and its modules. */
export interface PluginTypes {
  manifest: {
    readonly commands?: readonly NamedHandler[] | undefined;
    readonly jobs?: readonly NamedHandler[] | undefined;
    readonly webhooks?: ReadonlyArray<{ readonly event: string; readonly handler: string }> | undefined;
    readonly rest?: { readonly routes: readonly RouteHandler[] } | undefined;
  };
  /** Modules by their paths in the manifest, such as `{'./orders.js': typeof orders}`. */
  modules: Readonly<Record<string, object>>;
}

/** Plugin without types. Tests of an untyped plugin declare the types of results themselves. */
export interface UntypedPlugin {
  manifest: { commands: []; jobs: []; webhooks: []; rest: { routes: [] } };
  modules: Record<never, object>;
}

type EntryOf<List> = List extends ReadonlyArray<infer Entry> ? Entry : never;
type Named<Entry, Key extends string> = Entry extends { readonly [Part in Key]: infer Name extends string }
  ? Name
  : never;
type RefOf<Entry> = Entry extends { readonly handler: infer Ref } ? Ref : never;
type RouteOf<Rest> = Rest extends { readonly routes: ReadonlyArray<infer Route extends RouteHandler> }
  ? Route
  : never;

type Commands<Plugin extends PluginTypes> = EntryOf<Plugin['manifest']['commands']>;
type Jobs<Plugin extends PluginTypes> = EntryOf<Plugin['manifest']['jobs']>;
type Webhooks<Plugin extends PluginTypes> = EntryOf<Plugin['manifest']['webhooks']>;
type Routes<Plugin extends PluginTypes> = RouteOf<Plugin['manifest']['rest']>;

export type CommandId<Plugin extends PluginTypes> = Named<Commands<Plugin>, 'id'>;
export type JobId<Plugin extends PluginTypes> = Named<Jobs<Plugin>, 'id'>;
export type WebhookEvent<Plugin extends PluginTypes> = Named<Webhooks<Plugin>, 'event'>;
export type RouteMethod<Plugin extends PluginTypes> = Named<Routes<Plugin>, 'method'>;

export type CommandResultOf<Plugin extends PluginTypes, Id> = ResultOf<
  Plugin,
  RefOf<Extract<Commands<Plugin>, { id: Id }>>
>;
export type JobResultOf<Plugin extends PluginTypes, Id> = ResultOf<
  Plugin,
  RefOf<Extract<Jobs<Plugin>, { id: Id }>>
>;
export type WebhookResultOf<Plugin extends PluginTypes, Event> = ResultOf<
  Plugin,
  RefOf<Extract<Webhooks<Plugin>, { event: Event }>>
>;

/** Type of the body of a successful response. A stream is received as text. */
export type RouteBodyOf<Plugin extends PluginTypes, Method, Path extends string> = ResultOf<
  Plugin,
  RefOf<RouteAt<Extract<Routes<Plugin>, { method: Method }>, Path>>
>;

/** Selects the route of a path. As in the router, a declared path without parameters takes precedence. */
type RouteAt<Route extends RouteHandler, Path extends string> = [ExactRoute<Route, Path>] extends [never]
  ? FittingRoute<Route, Path>
  : ExactRoute<Route, Path>;
type ExactRoute<Route extends RouteHandler, Path> = Route extends unknown
  ? Path extends Route['path']
    ? Route
    : never
  : never;
type FittingRoute<Route extends RouteHandler, Path extends string> = Route extends unknown
  ? Fits<Trimmed<Route['path']>, Trimmed<Path>> extends true
    ? Route
    : never
  : never;

type Trimmed<Path extends string> = Path extends `/${infer Rest}` ? Rest : Path;

/**
 * Compares a declared path with a requested path, segment by segment. The declared segment `:name` matches any text.
 */
type Fits<Declared extends string, Path extends string> = Declared extends `${infer First}/${infer Rest}`
  ? Path extends `${infer Segment}/${infer Tail}`
    ? FitsSegment<First, Segment> extends true
      ? Fits<Rest, Tail>
      : false
    : false
  : Path extends `${string}/${string}`
    ? false
    : FitsSegment<Declared, Path>;
type FitsSegment<Declared, Segment> = Declared extends `:${string}`
  ? true
  : Segment extends Declared
    ? true
    : false;

type ResultOf<Plugin extends PluginTypes, Ref> = [Ref] extends [never]
  ? unknown
  : Ref extends `${infer File}#${infer Name}`
    ? HandlerResult<Export<ModuleAt<Plugin['modules'], File>, Name>>
    : unknown;

/** Selects a module by its file. `./orders.js` and `orders.js` are the same file. */
type ModuleAt<Modules, File extends string> = File extends keyof Modules
  ? Modules[File]
  : `./${File}` extends keyof Modules
    ? Modules[`./${File}`]
    : File extends `./${infer Bare}`
      ? Bare extends keyof Modules
        ? Modules[Bare]
        : unknown
      : unknown;
type Export<Module, Name> = Name extends keyof Module ? Module[Name] : unknown;

/** Result type of a handler. A handler is a function, or a definition with a schema or an `execute` function. */
type HandlerResult<Handler> = Handler extends (...args: never[]) => infer Returned
  ? AsReceived<ReturnedResult<Awaited<Returned>>>
  : Handler extends { readonly kind: string; readonly '~result'?: infer Result }
    ? AsReceived<Result>
    : Handler extends { execute: (...args: never[]) => infer Returned }
      ? AsReceived<ReturnedResult<Awaited<Returned>>>
      : unknown;

type AsReceived<Result> = Result extends StreamResult ? string : Json<Result>;

/** Type of a value after conversion to JSON and back. */
type Json<Value> = Value extends { toJSON(): infer Written }
  ? Written
  : Value extends object
    ? { [Key in keyof Value]: Json<Value[Key]> }
    : Value;
