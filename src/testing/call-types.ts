/** Tenant and user on whose behalf the test makes a call. */
export interface CallerOptions {
  /** Default: `default`. */
  tenantId?: string;
  /** Host id of the caller; null: unauthenticated. Default: `tester`. */
  user?: string | null;
}

export interface CommandOptions extends CallerOptions {
  host?: 'cli' | 'workflow';
}

/** Decision on an approval, and its author. */
export interface Decision extends CallerOptions {
  /** Whether the step is approved. Default: true. */
  approved?: boolean;
  comment?: string;
}

export interface RouteOptions extends CallerOptions {
  body?: unknown;
  query?: Record<string, string | number | boolean>;
  headers?: Record<string, string>;
}

/** Computes headers of a delivery for the plugin's own validator, from the secret and the body. */
export type SignDelivery = (signed: { secret: string; rawBody: string }) => Record<string, string>;

export interface DeliveryOptions {
  /** Default: `default`. */
  namespaceId?: string;
  instanceId?: string;
  /** Additional headers, such as `x-github-event`. Webhooks with a validator of the plugin need a function. */
  headers?: Record<string, string> | SignDelivery;
}

/** Response to the sender of a delivery. */
export interface DeliveryAnswer {
  status: number;
  webhookId: string;
  body: unknown;
}

/** Input of a validator. */
export interface ValidatorRequest {
  headers: Record<string, string>;
  /** The body as text. */
  rawBody: string;
  secret: string;
}

export interface RouteAnswer<Body = unknown> {
  status: number;
  headers: Headers;
  /** The parsed body if it is JSON, otherwise its text. */
  body: Body;
}

export interface WebhookOptions {
  /** Default: `default`. */
  namespaceId?: string;
  instanceId?: string;
  webhookId?: string;
  /** Request headers in lower case: `ctx.hostContext.headers`. */
  headers?: Record<string, string>;
  source?: string;
}

/** A log line of the plugin or of a service. */
export interface TestLog {
  level: string;
  message: string;
  pluginId?: string;
  meta?: Record<string, unknown>;
}
