import { z } from 'zod';
import { ExecutionRequest } from './execution.ts';

/** Version of the frame formats. The gateway rejects a `hello` frame with a different version. */
export const HOST_PROTOCOL = 1;

/** Limits of the WebSocket between agent and gateway. @spec docs/decisions/0023 */
export const HOST_SOCKET = {
  path: '/hosts/connect',
  /** Time limit between the WebSocket upgrade and a valid hello frame. */
  helloMs: 5000,
  heartbeatMs: 15_000,
  /** Number of heartbeat intervals without any frame after which a connection is considered dead. */
  maxMissedHeartbeats: 3,
  /** Maximum size of one WebSocket message in bytes. */
  messageBytes: 1024 * 1024,
  /**
   * Maximum size of one part of a frame, in characters (at most 192 KiB in UTF-8). Longer frames are split into parts.
   */
  partChars: 64 * 1024,
  /** Maximum total size of a frame from the agent, in bytes. Frames of runner processes have the same limit. */
  agentFrameBytes: 8 * 1024 * 1024,
  /** Maximum total size of a frame from the gateway, in bytes. The limit equals the maximum size of a queued input. */
  gatewayFrameBytes: 64 * 1024 * 1024,
  /** Size of the flow control window of one stream between agent and gateway, in bytes. */
  streamWindowBytes: 1024 * 1024,
} as const;

/** WebSocket close codes. RFC 6455 defines the codes 1001, 1003, 1007 and 1009. */
export const HOST_CLOSE = {
  goingAway: 1001,
  binary: 1003,
  malformed: 1007,
  protocol: 1008,
  tooLarge: 1009,
  unauthenticated: 4401,
  revoked: 4403,
  silent: 4408,
  replaced: 4409,
} as const;

const ShortText = z.string().max(256);
const ExecutionId = z.string().min(1).max(128);

export const HostPlugin = z.object({
  id: z.string().max(214),
  version: ShortText,
  integrity: z.string().max(256).nullable(),
});
export type HostPlugin = z.infer<typeof HostPlugin>;

/** First frame of an agent. `proof` is the response to the gateway's challenge. @spec docs/security.md "Hosts" */
export const HelloFrame = z.object({
  type: z.literal('hello'),
  protocol: z.number().int(),
  agentVersion: ShortText,
  capabilities: z.array(z.string().min(1).max(64)).max(64).default([]),
  plugins: z.array(HostPlugin).max(1000).default([]),
  proof: z.string().max(256).optional(),
});
export type HelloFrame = z.infer<typeof HelloFrame>;

/**
 * Part of the text of a split frame. Parts arrive in order, and only one frame is split at a time. Unsplit frames can
 * arrive between the parts.
 */
export const PartFrame = z.object({
  type: z.literal('part'),
  /** Sequence number of the frame, counted separately for each direction. */
  frame: z.number().int().nonnegative(),
  /** Index of the part within its frame, starting at 0. */
  index: z.number().int().nonnegative(),
  last: z.boolean(),
  /** Id of the execution to which the frame belongs. */
  executionId: z.string().max(128).optional(),
  text: z.string().max(HOST_SOCKET.partChars),
});
export type PartFrame = z.infer<typeof PartFrame>;

const FrameFailure = z.object({
  code: z.string().max(128),
  message: z.string().max(8192),
  details: z.record(z.string(), z.unknown()).optional(),
});

/** Frames from an agent, by `type`. The content of results and calls is untrusted. */
export const AGENT_FRAMES = {
  hello: HelloFrame,
  heartbeat: z.object({ type: z.literal('heartbeat'), at: z.number() }),
  /** Announces that the agent is stopping. The agent finishes running executions and accepts no new executions. */
  drain: z.object({ type: z.literal('drain') }),
  auth: z.object({ type: z.literal('auth'), accessToken: z.string().min(1).max(8192) }),
  /** Reports `preparing` while the plugin is downloaded, and `running` once the time limit of the handler starts. */
  progress: z.object({
    type: z.literal('progress'),
    executionId: ExecutionId,
    state: z.enum(['preparing', 'running']),
  }),
  /**
   * Reports that the handler has started. The agent sends this frame only if the gateway set `tellsBegun` in the
   * `execute` frame.
   */
  begun: z.object({ type: z.literal('begun'), executionId: ExecutionId }),
  log: z.object({
    type: z.literal('log'),
    executionId: ExecutionId,
    level: z.string().max(16),
    message: z.string(),
    meta: z.record(z.string(), z.unknown()).optional(),
  }),
  call: z.object({
    type: z.literal('call'),
    callId: z.number().int(),
    executionId: ExecutionId,
    service: z.string().max(64),
    method: z.string().max(64),
    args: z.array(z.unknown()).max(16),
  }),
  /**
   * Reports that the handler has returned a stream. The agent sends `chunk` frames on demand, and finally the `result`
   * frame.
   */
  stream: z.object({ type: z.literal('stream'), executionId: ExecutionId, contentType: ShortText }),
  chunk: z.object({ type: z.literal('chunk'), executionId: ExecutionId, data: z.base64() }),
  part: PartFrame,
  result: z.object({ type: z.literal('result'), executionId: ExecutionId, result: z.unknown().optional() }),
  error: z.object({ type: z.literal('error'), executionId: ExecutionId, error: FrameFailure }),
} as const;

export type AgentFrameType = keyof typeof AGENT_FRAMES;
export type AgentFrame = { [Type in AgentFrameType]: z.infer<(typeof AGENT_FRAMES)[Type]> }[AgentFrameType];

/**
 * Execution as sent to an agent. The plugin is identified by id, version and digest. The plugin's folder on the gateway
 * is omitted.
 */
export const HostExecution = ExecutionRequest.omit({ executionId: true, plugin: true }).extend({
  plugin: HostPlugin,
  // The input is optional, because JSON omits undefined values.
  input: z.unknown().optional(),
});
export type HostExecution = z.infer<typeof HostExecution>;

const ReplyOutcome = z.union([
  z.object({ ok: z.literal(true), value: z.unknown().optional() }),
  z.object({ ok: z.literal(false), error: FrameFailure }),
]);

/** Frames from the gateway, by `type`. */
export const GATEWAY_FRAMES = {
  /**
   * The first frame of a connection. The agent must respond with a `hello` frame that proves possession of the host's
   * private key.
   */
  challenge: z.object({
    type: z.literal('challenge'),
    sessionId: z.string(),
    nonce: z.string(),
    publicKey: z.string(),
  }),
  welcome: z.object({
    type: z.literal('welcome'),
    sessionId: z.string(),
    hostId: z.string(),
    heartbeatMs: z.number().int().positive(),
    /** Platform methods that handlers are allowed to call, by service. */
    services: z.record(z.string(), z.array(z.string())),
  }),
  ack: z.object({ type: z.literal('ack'), at: z.number() }),
  renewed: z.object({ type: z.literal('renewed'), expiresAt: z.number().nullable() }),
  execute: z.object({
    type: z.literal('execute'),
    executionId: ExecutionId,
    request: HostExecution,
    /** Whether the caller accepts a stream as the result. */
    streams: z.literal(true).optional(),
    /** Whether the agent must send a `begun` frame when the handler starts. */
    tellsBegun: z.literal(true).optional(),
  }),
  /** Allows the agent to send `bytes` more bytes of a stream. Without this credit, the agent sends no chunks. */
  pull: z.object({ type: z.literal('pull'), executionId: ExecutionId, bytes: z.number().int().positive() }),
  part: PartFrame,
  /** Cancels the remaining parts of a split frame that is no longer needed. */
  drop: z.object({ type: z.literal('drop'), frame: z.number().int().nonnegative() }),
  cancel: z.object({ type: z.literal('cancel'), executionId: ExecutionId, reason: z.string() }),
  reply: z.object({ type: z.literal('reply'), callId: z.number().int(), outcome: ReplyOutcome }),
} as const;

export type GatewayFrameType = keyof typeof GATEWAY_FRAMES;
export type GatewayFrame = {
  [Type in GatewayFrameType]: z.infer<(typeof GATEWAY_FRAMES)[Type]>;
}[GatewayFrameType];
