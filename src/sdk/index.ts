/**
 * What plugin authors import as `svc-platform/sdk`. It loads zod and nothing else, since every plugin
 * process pays for it at its start. @spec docs/plugins.md
 */
import type {
  CommandResult,
  HandlerDefinition,
  HandlerReturn,
  PluginContextV3,
  RouteContext,
  StandardSchema,
  WebhookContext,
} from '../contracts/index.ts';

export type {
  CommandResult,
  EntryOptions,
  HandlerDefinition,
  HandlerReturn,
  KeyValueAccess,
  PluginContextV3,
  PluginLog,
  PluginUser,
  RouteContext,
  StandardSchema,
  WebhookContext,
} from '../contracts/index.ts';
export { z } from 'zod';

type Awaitable<Value> = Value | Promise<Value>;

/** The parts every definition has; `input` and `output` are zod schemas (or any Standard Schema). */
interface Spec<Context, Input, Result> {
  input?: StandardSchema<Input>;
  output?: StandardSchema<Result>;
  execute(ctx: Context, input: Input): Awaitable<HandlerReturn<Result>>;
}

interface RouteSpec<Input, Result> extends Spec<RouteContext, Input, Result> {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
}

/** A command of the command line; workflows run it too. */
export function defineCommand<Input = unknown, Result = unknown>(
  spec: Spec<PluginContextV3, Input, Result>,
): HandlerDefinition<PluginContextV3, Input> {
  return { kind: 'command', ...spec };
}

/** A REST route's handler; with `method` it refuses to run under another one. @spec Plugin routes */
export function defineRoute<Input = unknown, Result = unknown>(
  spec: RouteSpec<Input, Result>,
): HandlerDefinition<RouteContext, Input> {
  return { kind: 'route', ...spec };
}

/** A webhook's handler; its input is the parsed body. @spec Webhook handler context */
export function defineWebhook<Input = unknown, Result = unknown>(
  spec: Spec<WebhookContext, Input, Result>,
): HandlerDefinition<WebhookContext, Input> {
  return { kind: 'webhook', ...spec };
}

/** A background job's handler. */
export function defineJob<Input = unknown, Result = unknown>(
  spec: Spec<PluginContextV3, Input, Result>,
): HandlerDefinition<PluginContextV3, Input> {
  return { kind: 'job', ...spec };
}

/** What a webhook validator is given: headers in lower case, the body as base64, the secret. */
export interface ValidatorInput {
  headers: Record<string, string>;
  rawBody: string;
  secret: string;
}

/** Decides whether a delivery is genuine; a throw counts as `{valid: false}`. @spec WebhookAuthConfig: custom */
export function defineValidator(spec: {
  execute(ctx: PluginContextV3, input: ValidatorInput): Awaitable<{ valid: boolean }>;
}): HandlerDefinition<PluginContextV3, ValidatorInput> {
  return { kind: 'validator', ...spec };
}

/** A success. @spec Command result */
export function ok<Result>(result?: Result, meta?: Record<string, unknown>): CommandResult<Result> {
  return { exitCode: 0, ...(result === undefined ? {} : { result }), ...(meta ? { meta } : {}) };
}

/** A failure that the plugin declares: `code` is one of the route's `errors`. @spec Command result */
export function fail(
  code: string,
  message: string,
  details?: Record<string, unknown>,
): CommandResult<never> {
  return { exitCode: 1, error: { code, message, ...(details ? { details } : {}) } };
}
