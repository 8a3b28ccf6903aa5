/** Every figure the spec fixes and those it leaves to us. @spec Limits; docs/gateway.md "Limits" */
export const LIMITS = {
  webhookBodyBytes: 1024 * 1024,
  webhookRequestsPerMinute: 60,
  webhookProvisionsPerMinute: 10,
  webhookListsPerMinute: 60,
  /** How far a signed timestamp may be off, both ways. */
  webhookToleranceSeconds: 300,
  /** Refused signatures a minute from one address, over all webhooks. */
  webhookFailuresPerMinute: 120,
  idempotencyWindowMs: 7 * 24 * 3600_000,
  secretGraceMs: 24 * 3600_000,
  accessTokenSeconds: 3600,
  jwtClockToleranceSeconds: 5,
  routeTimeoutMs: 60_000,

  headerBytes: 16 * 1024,
  headersTimeoutMs: 10_000,
  /** Until a request has arrived whole. */
  requestTimeoutMs: 120_000,
  /** How long no byte of a body that is awaited may come. */
  bodyIdleMs: 30_000,
  keepAliveMs: 60_000,
  /** A message of a client through a proxied WebSocket, as it is on the wire. */
  webSocketMessageBytes: 1024 * 1024,
  jsonDepth: 512,
  /** A body that is read before it is known who sends it: logins, registrations. */
  openBodyBytes: 64 * 1024,
  requestIdChars: 128,
  tokenChars: 8192,

  /** One value of the state daemon, as JSON in UTF-8. */
  stateValueBytes: 256 * 1024,

  /** One object of `ctx.storage`: as base64 it fits into a frame of the runner's channel. */
  storageObjectBytes: 5 * 1024 * 1024,

  /** What one step of a workflow hands on, in characters of JSON. */
  stepOutputChars: 1024 * 1024,
} as const;
