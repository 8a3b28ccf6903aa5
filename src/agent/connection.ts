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
import { createFrameJoiner, Outbox } from '../plugins/index.ts';
import type { AgentExecutions } from './executions.ts';
import type { AgentIdentity } from './identity.ts';
import type { Link } from './link.ts';

const HANDSHAKE_MS = seconds(10);
const FLUSH_POLL_MS = 20;
/** Size of the send queue, in bytes, above which log lines are dropped. Results are never dropped. */
const MAX_LOG_BACKLOG = 4 * 1024 * 1024;

/**
 * End of a connection. `status` is the HTTP status of a refused upgrade. `code` is the WebSocket close code, or 1006 if
 * no close frame was received.
 */
export interface ConnectionEnd {
  status?: number;
  code: number;
  reason: string;
  /** Whether the gateway accepted the connection with a `welcome` frame. */
  wasOpen: boolean;
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

/** One connection to the gateway. The connection fails if the gateway sends nothing for several heartbeat intervals. */
export class Connection {
  /** Resolves when the socket is closed. Never rejects. */
  readonly ended: Promise<ConnectionEnd>;
  readonly #deps: ConnectionDeps;
  readonly #socket: WebSocket;
  #lastFrameAt: number;
  #isOpen = false;
  #refusal: ConnectionEnd | undefined;
  #fault = '';
  readonly #stopGreeting: () => void;
  readonly #outbox: Outbox;
  readonly #joiner = createFrameJoiner(HOST_SOCKET.gatewayFrameBytes);
  readonly #link: Link = { send: (frame) => this.#send(frame) };
  #stopBeating = (): void => {};

  constructor(deps: ConnectionDeps) {
    this.#deps = deps;
    const { identity, clock, executions } = deps;
    this.#socket = new WebSocket(`${identity.gateway.replace(/^http/, 'ws')}${HOST_SOCKET.path}`, {
      headers: { authorization: `Bearer ${deps.accessToken}` },
      perMessageDeflate: false,
      maxPayload: HOST_SOCKET.messageBytes,
      handshakeTimeout: HANDSHAKE_MS,
    });
    const { promise, resolve } = Promise.withResolvers<ConnectionEnd>();
    this.ended = promise;
    const socket = this.#socket;
    this.#outbox = new Outbox(
      {
        send: (text, onSent) => socket.send(text, onSent),
        get bufferedBytes() {
          return socket.bufferedAmount;
        },
      },
      HOST_SOCKET.agentFrameBytes,
    );
    this.#lastFrameAt = clock.monotonic();
    // Detects a gateway that accepts the connection but never sends a `welcome` frame.
    this.#stopGreeting = clock.after(HANDSHAKE_MS + HOST_SOCKET.helloMs, () => {
      if (!this.#isOpen) this.#fail('no welcome from the gateway in time');
    });
    socket.on('message', (data: RawData) => {
      this.#lastFrameAt = clock.monotonic();
      try {
        this.#read(String(data));
      } catch (error) {
        this.#fail(messageOf(error));
      }
    });
    socket.on('unexpected-response', (request, response) => {
      const status = response.statusCode ?? 0;
      this.#refusal = { status, code: 1006, reason: `the gateway answered ${status}`, wasOpen: false };
      request.destroy();
      socket.terminate();
    });
    socket.on('error', (error) => {
      this.#fault ||= messageOf(error);
    });
    socket.on('close', (code, reason) => {
      this.#stopGreeting();
      this.#stopBeating();
      this.#outbox.close();
      executions.abandon(this.#link);
      resolve(this.#refusal ?? { code, reason: String(reason) || this.#fault, wasOpen: this.#isOpen });
    });
  }

  /** Sends a renewed access token over the open connection. */
  renew(accessToken: string): void {
    void this.#send({ type: 'auth', accessToken });
  }

  drain(): void {
    void this.#send({ type: 'drain' });
  }

  /** Resolves when all frames are sent or the socket is closed. */
  async flushed(): Promise<void> {
    while (this.#socket.readyState === WebSocket.OPEN && this.#outbox.backlog > 0) await sleep(FLUSH_POLL_MS);
  }

  close(): void {
    const { clock } = this.#deps;
    this.#socket.close(HOST_CLOSE.goingAway, 'the agent is stopping');
    clock.after(seconds(1), () => this.#socket.terminate());
  }

  #send(frame: AgentFrame): boolean {
    if (this.#socket.readyState !== WebSocket.OPEN) return false;
    if (frame.type === 'log' && this.#outbox.backlog > MAX_LOG_BACKLOG) return true;
    // The outbox keeps the frames of one execution in order. Frames of other executions can overtake a large result.
    return this.#outbox.send(frame, 'executionId' in frame ? frame.executionId : undefined);
  }

  #fail(reason: string): void {
    this.#fault ||= reason;
    this.#socket.terminate();
  }

  #handle(frame: GatewayFrame): void {
    const { executions } = this.#deps;
    if (frame.type === 'challenge') this.#greet(frame);
    else if (frame.type === 'welcome') this.#begin(frame);
    else if (frame.type === 'execute') executions.start(this.#link, frame);
    else if (frame.type === 'pull') executions.pull(frame.executionId, frame.bytes);
    else if (frame.type === 'part') this.#join(frame);
    else if (frame.type === 'drop') this.#joiner.drop(frame.frame);
    else if (frame.type === 'cancel') executions.cancel(frame.executionId, frame.reason);
    else if (frame.type === 'reply') executions.calls.settle(frame.callId, frame.outcome);
  }

  #join(part: PartFrame): void {
    const joined = this.#joiner.take(part);
    if (joined.kind === 'fault') this.#fail(joined.why);
    else if (joined.kind === 'whole') this.#read(joined.text);
  }

  #read(text: string): void {
    const { logger } = this.#deps;
    const frame = readFrame(text);
    if (typeof frame !== 'string') this.#handle(frame);
    else logger.warn(`Unsupported frame from the gateway: ${frame}`);
  }

  #greet(challenge: Extract<GatewayFrame, { type: 'challenge' }>): void {
    const { identity } = this.#deps;
    const hello: AgentFrame = {
      type: 'hello',
      protocol: HOST_PROTOCOL,
      agentVersion: version,
      capabilities: identity.capabilities,
      plugins: this.#deps.plugins,
      proof: answerChallenge(challenge, identity.keys, identity.hostId),
    };
    // The `hello` frame bypasses the outbox, because the outbox can split large frames. The gateway accepts split
    // frames only after `hello` is verified.
    this.#socket.send(JSON.stringify(hello));
  }

  #begin({ sessionId, heartbeatMs, services }: Extract<GatewayFrame, { type: 'welcome' }>): void {
    const { executions, clock } = this.#deps;
    this.#isOpen = true;
    this.#stopGreeting();
    executions.calls.offer(services);
    this.#stopBeating = every(clock, heartbeatMs, () => {
      const silentMs = clock.monotonic() - this.#lastFrameAt;
      if (silentMs >= heartbeatMs * HOST_SOCKET.maxMissedHeartbeats) this.#fail('no frames from the gateway');
      else this.#send({ type: 'heartbeat', at: clock.now() });
    });
    this.#deps.onWelcome(sessionId);
  }
}

/**
 * Returns the parsed frame, or a description of the error. Newer gateways can send frame types that this agent does not
 * support.
 */
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
