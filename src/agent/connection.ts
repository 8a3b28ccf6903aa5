import { setTimeout as sleep } from 'node:timers/promises';
import { type RawData, WebSocket } from 'ws';
import {
  type AgentFrame,
  GATEWAY_FRAMES,
  type GatewayFrame,
  type GatewayFrameType,
  HOST_CLOSE,
  HOST_PROTOCOL,
  HOST_SOCKET,
  type HostPlugin,
  type PartFrame,
} from '../contracts/index.ts';
import { messageOf } from '../kit/errors/errors.ts';
import { version } from '../kit/files/paths.ts';
import { answerChallenge } from '../kit/security/host-proof.ts';
import type { Logger } from '../kit/telemetry/logger.ts';
import { type Clock, every } from '../kit/time/clock.ts';
import { seconds } from '../kit/time/duration.ts';
import { createFrameJoiner, createOutbox } from '../plugins/index.ts';
import type { AgentExecutions } from './executions.ts';
import type { AgentIdentity } from './identity.ts';
import type { Link } from './link.ts';

const HANDSHAKE_MS = seconds(10);
const FLUSH_POLL_MS = 20;
/** Max bytes not yet sent to the gateway. Beyond it, log lines are dropped; results are not. */
const MAX_LOG_BACKLOG = 4 * 1024 * 1024;

/** `status` if the upgrade was refused, else a close code (1006: none received). */
export interface ConnectionEnd {
  status?: number;
  code: number;
  reason: string;
  /** Whether the gateway sent a welcome. */
  wasOpen: boolean;
}

export interface Connection {
  /** Resolves when the socket is closed; never rejects. */
  readonly ended: Promise<ConnectionEnd>;
  /** Sends a newer token over the same socket. */
  renew(accessToken: string): void;
  drain(): void;
  /** Resolves when everything is sent or the socket is closed. */
  flushed(): Promise<void>;
  close(): void;
}

export interface ConnectionDeps {
  identity: AgentIdentity;
  accessToken: string;
  plugins: HostPlugin[];
  executions: AgentExecutions;
  clock: Clock;
  logger: Logger;
  onWelcome(sessionId: string): void;
}

/** Connects once, proves the host's key, sends heartbeats and forwards executions. Gives up after three silent heartbeats. */
export function connect(deps: ConnectionDeps): Connection {
  const { identity, executions, clock, logger } = deps;
  const socket = new WebSocket(`${identity.gateway.replace(/^http/, 'ws')}${HOST_SOCKET.path}`, {
    headers: { authorization: `Bearer ${deps.accessToken}` },
    perMessageDeflate: false,
    maxPayload: HOST_SOCKET.messageBytes,
    handshakeTimeout: HANDSHAKE_MS,
  });
  const { promise: ended, resolve } = Promise.withResolvers<ConnectionEnd>();
  let lastFrameAt = clock.monotonic();
  let isOpen = false;
  let refusal: ConnectionEnd | undefined;
  let fault = '';
  let stopBeating = (): void => {};
  // Covers a gateway that accepts the connection but never sends a welcome.
  const stopGreeting = clock.after(HANDSHAKE_MS + HOST_SOCKET.helloMs, () => {
    if (!isOpen) fail('no welcome from the gateway in time');
  });

  const outbox = createOutbox(
    {
      send: (text, onSent) => socket.send(text, onSent),
      get bufferedBytes() {
        return socket.bufferedAmount;
      },
    },
    HOST_SOCKET.agentFrameBytes,
  );
  const joiner = createFrameJoiner(HOST_SOCKET.gatewayFrameBytes);
  const link: Link = { send };

  function send(frame: AgentFrame): boolean {
    if (socket.readyState !== WebSocket.OPEN) return false;
    if (frame.type === 'log' && outbox.backlog > MAX_LOG_BACKLOG) return true;
    // Frames of one execution stay in order; other frames do not wait for its large results.
    return outbox.send(frame, 'executionId' in frame ? frame.executionId : undefined);
  }

  function fail(reason: string): void {
    fault ||= reason;
    socket.terminate();
  }

  function handle(frame: GatewayFrame): void {
    if (frame.type === 'challenge') greet(frame);
    else if (frame.type === 'welcome') begin(frame);
    else if (frame.type === 'execute') executions.start(link, frame);
    else if (frame.type === 'pull') executions.pull(frame.executionId, frame.bytes);
    else if (frame.type === 'part') join(frame);
    else if (frame.type === 'drop') joiner.drop(frame.frame);
    else if (frame.type === 'cancel') executions.cancel(frame.executionId, frame.reason);
    else if (frame.type === 'reply') executions.calls.settle(frame.callId, frame.outcome);
  }

  function join(part: PartFrame): void {
    const joined = joiner.take(part);
    if (joined.kind === 'fault') fail(joined.why);
    else if (joined.kind === 'whole') read(joined.text);
  }

  function read(text: string): void {
    const frame = readFrame(text);
    if (typeof frame !== 'string') handle(frame);
    else logger.warn(`Unsupported frame from the gateway: ${frame}`);
  }

  function greet(challenge: Extract<GatewayFrame, { type: 'challenge' }>): void {
    const hello: AgentFrame = {
      type: 'hello',
      protocol: HOST_PROTOCOL,
      agentVersion: version,
      capabilities: identity.capabilities,
      plugins: deps.plugins,
      proof: answerChallenge(challenge, identity.keys, identity.hostId),
    };
    // Sent directly, not in parts: the gateway accepts parts only after the proof.
    socket.send(JSON.stringify(hello));
  }

  function begin({ sessionId, heartbeatMs, services }: Extract<GatewayFrame, { type: 'welcome' }>): void {
    isOpen = true;
    stopGreeting();
    executions.calls.offer(services);
    stopBeating = every(clock, heartbeatMs, () => {
      const silentMs = clock.monotonic() - lastFrameAt;
      if (silentMs >= heartbeatMs * HOST_SOCKET.maxMissedHeartbeats) fail('no frames from the gateway');
      else send({ type: 'heartbeat', at: clock.now() });
    });
    deps.onWelcome(sessionId);
  }

  socket.on('message', (data: RawData) => {
    lastFrameAt = clock.monotonic();
    try {
      read(String(data));
    } catch (error) {
      fail(messageOf(error));
    }
  });
  socket.on('unexpected-response', (request, response) => {
    const status = response.statusCode ?? 0;
    refusal = { status, code: 1006, reason: `the gateway answered ${status}`, wasOpen: false };
    request.destroy();
    socket.terminate();
  });
  socket.on('error', (error) => {
    fault ||= messageOf(error);
  });
  socket.on('close', (code, reason) => {
    stopGreeting();
    stopBeating();
    outbox.close();
    executions.abandon(link);
    resolve(refusal ?? { code, reason: String(reason) || fault, wasOpen: isOpen });
  });
  return {
    ended,
    renew: (accessToken) => void send({ type: 'auth', accessToken }),
    drain: () => void send({ type: 'drain' }),
    async flushed() {
      while (socket.readyState === WebSocket.OPEN && outbox.backlog > 0) await sleep(FLUSH_POLL_MS);
    },
    close() {
      socket.close(HOST_CLOSE.goingAway, 'the agent is stopping');
      clock.after(seconds(1), () => socket.terminate());
    },
  };
}

/** Parses a frame, or returns what is wrong with it. A newer gateway may send unknown types. */
function readFrame(text: string): GatewayFrame | string {
  try {
    const value = JSON.parse(text) as { type?: unknown };
    const { type } = value;
    if (typeof type !== 'string' || !Object.hasOwn(GATEWAY_FRAMES, type)) return `a "${String(type)}" frame`;
    return GATEWAY_FRAMES[type as GatewayFrameType].parse(value);
  } catch (error) {
    return messageOf(error);
  }
}
