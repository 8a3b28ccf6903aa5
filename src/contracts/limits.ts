/** Limits that the spec or this implementation defines. @spec Limits; docs/gateway.md "Limits" */
/** Maximum size of the form of an approval or a signal step, in characters of JSON. Each load of the run reads it. */
export const MAX_FORM_CHARS = 32 * 1024;

export const LIMITS = {
  webhookBodyBytes: 1024 * 1024,
  webhookRequestsPerMinute: 60,
  webhookProvisionsPerMinute: 10,
  webhookListsPerMinute: 60,
  /** Maximum difference between the gateway's clock and a signed timestamp, in either direction. */
  webhookToleranceSeconds: 300,
  /** Maximum number of invalid signatures per minute from one IP address, counted across all webhooks. */
  webhookFailuresPerMinute: 120,
  idempotencyWindowMs: 7 * 24 * 3600_000,
  secretGraceMs: 24 * 3600_000,
  accessTokenSeconds: 3600,
  jwtClockToleranceSeconds: 5,
  routeTimeoutMs: 60_000,

  headerBytes: 16 * 1024,
  headersTimeoutMs: 10_000,
  /** Time limit for receiving a complete request. */
  requestTimeoutMs: 120_000,
  /** Time limit between two chunks of a body. */
  bodyIdleMs: 30_000,
  keepAliveMs: 60_000,
  /** Maximum size of a client's message on a proxied WebSocket, in bytes on the wire. */
  webSocketMessageBytes: 1024 * 1024,
  jsonDepth: 512,
  /** Maximum size of a body that is read before authentication, such as the body of a login request, in bytes. */
  openBodyBytes: 64 * 1024,
  requestIdChars: 128,
  tokenChars: 8192,

  /** Maximum size of a value in the state service, as JSON in UTF-8. */
  stateValueBytes: 256 * 1024,

  /**
   * Maximum size of an object in `ctx.storage`, in bytes. An object of this size fits as base64 into one message
   * between a plugin process and its service.
   */
  storageObjectBytes: 5 * 1024 * 1024,

  /** Maximum size of a message's `data`, as JSON in UTF-8. */
  messageBytes: 256 * 1024,
  endpointsPerNamespace: 10_000,
  /** Maximum number of event types of an endpoint. */
  endpointTypes: 100,
  /** Maximum number of custom headers of an endpoint. */
  endpointHeaders: 20,

  /** Maximum size of a workflow step's output, in characters of JSON. */
  stepOutputChars: 1024 * 1024,
} as const;
