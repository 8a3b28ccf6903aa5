/** Tenant and user of a call. */
export interface CallerOptions {
  /** Id of the namespace. The default is `default`. */
  tenantId?: string;
  /** Host id of the caller. The default is `tester`. With null, the call is unauthenticated. */
  user?: string | null;
}

export interface CommandOptions extends CallerOptions {
  host?: 'cli' | 'workflow';
}

/** Decision on an approval, and the user who decides. */
export interface Decision extends CallerOptions {
  /** Whether the step is approved. The default is true. */
  approved?: boolean;
  comment?: string;
  /** Data that the form of the step asks for. */
  data?: unknown;
}

export interface RouteOptions extends CallerOptions {
  body?: unknown;
  query?: Record<string, string | number | boolean>;
  headers?: Record<string, string>;
}

/**
 * Returns the headers that authenticate a delivery for a validator of the plugin. The input is the webhook's secret and
 * the body.
 */
export type SignDelivery = (signed: { secret: string; rawBody: string }) => Record<string, string>;

export interface DeliveryOptions {
  /** Id of the tenant. The default is `default`. */
  namespaceId?: string;
  instanceId?: string;
  /**
   * Additional headers, such as `x-github-event`. If a validator of the plugin authenticates the webhook, a function is
   * required to sign the body.
   */
  headers?: Record<string, string> | SignDelivery;
  /** Content type of the body. With it, a payload that is a string or bytes is sent as it is. */
  contentType?: string;
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
  /** Body of the response: the parsed value for JSON, otherwise the text. */
  body: Body;
}

export interface WebhookOptions {
  /** Id of the namespace. The default is `default`. */
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
