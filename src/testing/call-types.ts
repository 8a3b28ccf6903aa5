/** Tenant and user of a call. */
export interface CallerOptions {
  /** Id of the namespace. It is `default` if omitted. */
  tenantId?: string;
  /** Host id of the caller. It is `tester` if omitted. Null makes an unauthenticated call. */
  user?: string | null;
}

export interface CommandOptions extends CallerOptions {
  host?: 'cli' | 'workflow';
}

/** Decision on an approval, and the user who takes it. */
export interface Decision extends CallerOptions {
  /** Whether the step is approved. It is true if omitted. */
  approved?: boolean;
  comment?: string;
}

export interface RouteOptions extends CallerOptions {
  body?: unknown;
  query?: Record<string, string | number | boolean>;
  headers?: Record<string, string>;
}

/** Computes the headers that a validator of the plugin checks, from the webhook's secret and the body. */
export type SignDelivery = (signed: { secret: string; rawBody: string }) => Record<string, string>;

export interface DeliveryOptions {
  /** Id of the namespace. It is `default` if omitted. */
  namespaceId?: string;
  instanceId?: string;
  /**
   * Additional headers, such as `x-github-event`. If a validator of the plugin authenticates the webhook, a function
   * must sign the body.
   */
  headers?: Record<string, string> | SignDelivery;
}

export interface DeliveryAnswer {
  status: number;
  webhookId: string;
  body: unknown;
}

export interface ValidatorRequest {
  headers: Record<string, string>;
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
  /** Id of the tenant. It is `default` if omitted. */
  namespaceId?: string;
  instanceId?: string;
  webhookId?: string;
  /** Request headers with names in lower case, for `ctx.hostContext.headers`. */
  headers?: Record<string, string>;
  source?: string;
}

export interface TestLog {
  level: string;
  message: string;
  pluginId?: string;
  meta?: Record<string, unknown>;
}
