import { z } from 'zod';
import { ExecutionRequest } from './execution.ts';

/** The version of the frames below; a hello with another one is refused. */
export const HOST_PROTOCOL = 1;

/** @spec docs/decisions/0023 */
export const HOST_SOCKET = {
  path: '/hosts/connect',
  /** From the upgrade until a valid hello. */
  helloMs: 5000,
  heartbeatMs: 15_000,
  /** Beats without any frame after which a side takes the other for gone. */
  silentBeats: 3,
  /** One WebSocket message. */
  messageBytes: 1024 * 1024,
  /** A frame whose text is longer goes in parts of exactly this length, but for the last: at most 192 KiB in UTF-8. */
  partChars: 64 * 1024,
  /** One frame of an agent, in parts or not: what a runner may say at once. */
  agentFrameBytes: 8 * 1024 * 1024,
  /** One frame of the gateway: the largest input that waits for a worker. */
  gatewayFrameBytes: 64 * 1024 * 1024,
  /** What may be under way of one stream, between agent and gateway. */
  streamWindowBytes: 1024 * 1024,
} as const;

/** Why a socket was closed. 1001, 1003, 1007 and 1009 are those of RFC 6455. */
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

/** The first frame of an agent; `proof` answers the challenge. @spec docs/security.md "Hosts" */
export const HelloFrame = z.object({
  type: z.literal('hello'),
  protocol: z.number().int(),
  agentVersion: ShortText,
  capabilities: z.array(z.string().min(1).max(64)).max(64).default([]),
  plugins: z.array(HostPlugin).max(1000).default([]),
  proof: z.string().max(256).optional(),
});
export type HelloFrame = z.infer<typeof HelloFrame>;

/** A slice of a frame's text. Those of one frame come in order and before those of the next; other frames may come between. */
export const PartFrame = z.object({
  type: z.literal('part'),
  /** The number of the frame, which its sender counts. */
  frame: z.number().int().nonnegative(),
  /** 0, 1, 2, … */
  index: z.number().int().nonnegative(),
  last: z.boolean(),
  /** The execution it speaks of. */
  executionId: z.string().max(128).optional(),
  text: z.string().max(HOST_SOCKET.partChars),
});
export type PartFrame = z.infer<typeof PartFrame>;

const FrameFailure = z.object({
  code: z.string().max(128),
  message: z.string().max(8192),
  details: z.record(z.string(), z.unknown()).optional(),
});

/** Everything an agent may send, by `type`. What is in a result or a call is untrusted. */
export const AGENT_FRAMES = {
  hello: HelloFrame,
  heartbeat: z.object({ type: z.literal('heartbeat'), at: z.number() }),
  /** The agent is stopping: it finishes what it runs and takes nothing more. */
  drain: z.object({ type: z.literal('drain') }),
  auth: z.object({ type: z.literal('auth'), accessToken: z.string().min(1).max(8192) }),
  /** `preparing` while the plugin is fetched, `running` from when the handler's time counts. */
  progress: z.object({
    type: z.literal('progress'),
    executionId: ExecutionId,
    state: z.enum(['preparing', 'running']),
  }),
  /** The handler begins; only where `tellsBegun` asked for it. */
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
  /** The handler returned a stream; its pieces follow as they are pulled, then `result`. */
  stream: z.object({ type: z.literal('stream'), executionId: ExecutionId, contentType: ShortText }),
  chunk: z.object({ type: z.literal('chunk'), executionId: ExecutionId, data: z.base64() }),
  part: PartFrame,
  result: z.object({ type: z.literal('result'), executionId: ExecutionId, result: z.unknown().optional() }),
  error: z.object({ type: z.literal('error'), executionId: ExecutionId, error: FrameFailure }),
} as const;

export type AgentFrameType = keyof typeof AGENT_FRAMES;
export type AgentFrame = { [Type in AgentFrameType]: z.infer<(typeof AGENT_FRAMES)[Type]> }[AgentFrameType];

/** An execution as an agent gets it: the plugin by id, version and digest, never by the gateway's own folder. */
export const HostExecution = ExecutionRequest.omit({ executionId: true, plugin: true }).extend({
  plugin: HostPlugin,
  /** JSON leaves out what is undefined. */
  input: z.unknown().optional(),
});
export type HostExecution = z.infer<typeof HostExecution>;

const ReplyOutcome = z.union([
  z.object({ ok: z.literal(true), value: z.unknown().optional() }),
  z.object({ ok: z.literal(false), error: FrameFailure }),
]);

/** Everything the gateway may send. */
export const GATEWAY_FRAMES = {
  /** The first frame: what `hello` must prove the host's private key on. */
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
    /** What handlers may call on the platform, by service. */
    services: z.record(z.string(), z.array(z.string())),
  }),
  ack: z.object({ type: z.literal('ack'), at: z.number() }),
  renewed: z.object({ type: z.literal('renewed'), expiresAt: z.number().nullable() }),
  execute: z.object({
    type: z.literal('execute'),
    executionId: ExecutionId,
    request: HostExecution,
    /** The caller takes a stream as the result. */
    streams: z.literal(true).optional(),
    /** The caller waits for the handler's turn, and wants a `begun` frame. */
    tellsBegun: z.literal(true).optional(),
  }),
  /** Room for so many bytes more of a stream: none is sent that was not asked for. */
  pull: z.object({ type: z.literal('pull'), executionId: ExecutionId, bytes: z.number().int().positive() }),
  part: PartFrame,
  /** The rest of a frame does not come: nobody waits for it any more. */
  drop: z.object({ type: z.literal('drop'), frame: z.number().int().nonnegative() }),
  cancel: z.object({ type: z.literal('cancel'), executionId: ExecutionId, reason: z.string() }),
  reply: z.object({ type: z.literal('reply'), callId: z.number().int(), outcome: ReplyOutcome }),
} as const;

export type GatewayFrameType = keyof typeof GATEWAY_FRAMES;
export type GatewayFrame = {
  [Type in GatewayFrameType]: z.infer<(typeof GATEWAY_FRAMES)[Type]>;
}[GatewayFrameType];
