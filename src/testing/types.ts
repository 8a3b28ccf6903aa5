/** For whom a call is made. */
export interface CallerOptions {
  /** Default: `default`. */
  tenantId?: string;
  /** The host id of the caller; null: nobody is known. Default: `tester`. */
  user?: string | null;
}

export interface CommandOptions extends CallerOptions {
  host?: 'cli' | 'workflow';
}

/** What becomes of an approval, and who decides it. */
export interface Decision extends CallerOptions {
  /** Default: true. */
  approved?: boolean;
  comment?: string;
}

export interface RouteOptions extends CallerOptions {
  body?: unknown;
  query?: Record<string, string | number | boolean>;
  headers?: Record<string, string>;
}

/** Headers of a delivery, where the plugin's own validator decides: made of the secret and the bytes that are sent. */
export type SignDelivery = (signed: { secret: string; rawBody: string }) => Record<string, string>;

export interface DeliveryOptions {
  /** Default: `default`. */
  namespaceId?: string;
  instanceId?: string;
  /** Further headers, such as `x-github-event`. A function is needed for webhooks with a validator of the plugin. */
  headers?: Record<string, string> | SignDelivery;
}

/** What the sender of a delivery is answered. */
export interface DeliveryAnswer {
  status: number;
  webhookId: string;
  body: unknown;
}

/** What a validator is asked. */
export interface ValidatorRequest {
  headers: Record<string, string>;
  /** The bytes of the delivery as text. */
  rawBody: string;
  secret: string;
}

export interface RouteAnswer<Body = unknown> {
  status: number;
  headers: Headers;
  /** JSON as read, other bodies as text. */
  body: Body;
}

export interface WebhookOptions {
  /** Default: `default`. */
  namespaceId?: string;
  instanceId?: string;
  webhookId?: string;
  /** Of the request, in lower case: `ctx.hostContext.headers`. */
  headers?: Record<string, string>;
  source?: string;
}

/** A line of the plugin's log, or one about it. */
export interface TestLog {
  level: string;
  message: string;
  pluginId?: string;
  meta?: Record<string, unknown>;
}
