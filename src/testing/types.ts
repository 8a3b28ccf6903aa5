/** For whom a call is made. */
export interface CallerOptions {
  /** Default: `default`. */
  tenantId?: string;
  /** The host id of the caller; null: nobody is known. Default: `tester`. */
  user?: string | null;
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
