import { type GatewayFrame, HOST_CLOSE, HOST_SOCKET } from '../../../../contracts/index.ts';
import { messageOf } from '../../../../kit/errors/errors.ts';
import { createChallenge, type OpenChallenge } from '../../../../kit/security/host-proof.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { minutes } from '../../../../kit/time/duration.ts';
import { Outbox, type OutboxWire, type PlatformServices } from '../../../../plugins/index.ts';
import type { HostRecord, HostStore } from '../../../../store/ports/index.ts';
import type { Principal } from '../identity/authenticator.ts';
import { HostExecutions } from './executions.ts';
import { type AgentFrameOf, createFrameReader, type FrameReader, type WholeFrame } from './frames.ts';
import { type HelloFault, identityFault, protocolFault } from './handshake.ts';
import { createSessionReports, type SessionReports } from './session-reports.ts';

/**
 * Maximum number of unsent bytes. Above this limit the session is closed, because the agent does not read its socket.
 */
const MAX_BACKLOG_BYTES = 128 * 1024 * 1024;
/** Number of unsent bytes above which the session gets no new executions. */
const BUSY_BACKLOG_BYTES = 32 * 1024 * 1024;
const SILENT_MS = HOST_SOCKET.heartbeatMs * HOST_SOCKET.maxMissedHeartbeats;
/** Interval for storing `lastSeenAt`. With five thousand agents, storing each heartbeat would cause too many writes. */
const SEEN_EVERY_MS = minutes(1);
const MAX_REASON_CHARS = 120;

/** The WebSocket of an agent. */
export interface Wire extends OutboxWire {
  /**
   * Starts the close handshake. If the agent does not complete the handshake within a second, the connection is
   * destroyed.
   */
  close(code: number, reason: string): void;
}

export interface HostSessionDeps {
  sessionId: string;
  wire: Wire;
  /** The principal of the upgrade request. */
  principal: Principal;
  store: HostStore;
  /** Returns the fence token of this gateway, which owns the session. Throws if the gateway has lost its lease. */
  owner(): number;
  /** Resolves once the other gateways have read all changes made before the call. */
  spread(): Promise<void>;
  services: PlatformServices;
  clock: Clock;
  logger: Logger;
  /** Resolves with the principal of the token. Rejects if the token is invalid. */
  authenticate(accessToken: string): Promise<Principal>;
  isRevoked(principal: Principal): boolean;
  /**
   * Callback that is called when the agent has proved its identity. After this call, the session can get executions.
   */
  onOpen(session: HostSession): void;
  /** Callback that is called once, before the session's executions fail. */
  onClosed(session: HostSession): void;
}

/** A connection of a host agent, from its upgrade to its end. @spec Gateway: `/hosts/connect`; docs/decisions/0023 */
export class HostSession {
  readonly hostId: string;
  readonly namespaceId: string;
  readonly executions: HostExecutions;
  readonly #deps: HostSessionDeps;
  readonly #reports: SessionReports;
  readonly #outbox: Outbox;
  readonly #reader: FrameReader;
  readonly #openedAt: number;
  #phase: 'greeting' | 'checking' | 'open' | 'closed' = 'greeting';
  #principal: Principal;
  #challenge: OpenChallenge | undefined;
  #host: HostRecord | undefined;
  #capabilities: ReadonlySet<string> = new Set();
  #lastFrameAt: number;
  #seenAt: number;
  #isDraining = false;

  constructor(deps: HostSessionDeps) {
    const { sessionId, wire, clock, logger, services, principal } = deps;
    this.#deps = deps;
    this.#principal = principal;
    this.hostId = principal.hostId;
    this.namespaceId = principal.namespaceId;
    this.#openedAt = clock.monotonic();
    this.#lastFrameAt = this.#openedAt;
    this.#seenAt = this.#openedAt;
    this.#reports = createSessionReports(logger, { hostId: this.hostId, sessionId });
    const outbox = new Outbox(wire, HOST_SOCKET.gatewayFrameBytes);
    this.#outbox = outbox;
    this.#reader = createFrameReader({
      clock,
      onFrame: (frame) => this.#take(frame),
      onBegun: (executionId) => this.#expectLong(executionId),
      onUnknown: (type) => this.#reports.unknownFrame(type),
      onFault: (code, why) => this.close(code, why.slice(0, MAX_REASON_CHARS)),
    });
    this.executions = new HostExecutions({
      services,
      clock,
      logger,
      link: {
        hostId: this.hostId,
        get backlog() {
          return outbox.backlog;
        },
        send: (frame, executionId) => this.#send(frame, executionId),
        withdraw: (executionId) => outbox.withdraw(executionId),
        refuse: (why) => this.close(HOST_CLOSE.protocol, why),
      },
    });
  }

  get sessionId(): string {
    return this.#deps.sessionId;
  }

  get host(): HostRecord | undefined {
    return this.#host;
  }

  get capabilities(): ReadonlySet<string> {
    return this.#capabilities;
  }

  /** Returns whether the session can get executions, because its agent is authenticated and not draining. */
  get isOpen(): boolean {
    return this.#phase === 'open' && !this.#isDraining;
  }

  /** Returns whether the backlog of unsent bytes is too large to send more executions. */
  get isBusy(): boolean {
    return this.#outbox.backlog > BUSY_BACKLOG_BYTES;
  }

  start(): void {
    this.#challenge = createChallenge();
    const { nonce, publicKey } = this.#challenge;
    this.#send({ type: 'challenge', sessionId: this.sessionId, nonce, publicKey });
  }

  receive(text: string): void {
    if (this.#isOver) return;
    this.#lastFrameAt = this.#deps.clock.monotonic();
    this.#reader.read(text);
  }

  /**
   * Closes the session if the host was revoked or a time limit has passed. Time limits exist for `hello`, heartbeats,
   * incomplete frames and token expiry.
   */
  tick(): void {
    const { clock, isRevoked } = this.#deps;
    const now = clock.monotonic();
    if (this.#isOver) return;
    // The revocation is also checked before `hello`. A revoked host is then disconnected without waiting for the
    // `hello` timeout.
    if (isRevoked(this.#principal)) this.close(HOST_CLOSE.revoked, 'revoked');
    else if (clock.now() >= this.#principal.expiresAt)
      this.close(HOST_CLOSE.unauthenticated, 'the token has expired');
    else if (this.#phase !== 'open') {
      if (now - this.#openedAt >= HOST_SOCKET.helloMs) this.close(HOST_CLOSE.silent, 'no hello in time');
    } else if (now - this.#lastFrameAt >= SILENT_MS) this.close(HOST_CLOSE.silent, 'silent');
    else if (now - (this.#reader.latestPartAt ?? now) >= SILENT_MS)
      this.close(HOST_CLOSE.silent, 'the rest of a frame did not arrive');
  }

  close(code: number, reason: string): void {
    if (this.#isOver) return;
    this.#reports.closed(code, reason, this.#phase === 'open');
    this.#deps.wire.close(code, reason);
    this.#leave(reason);
  }

  /** Ends the session after its socket has closed. */
  ended(): void {
    if (this.#isOver) return;
    this.#reports.connectionLost();
    this.#leave('the connection was lost');
  }

  get #isOver(): boolean {
    return this.#phase === 'closed';
  }

  #leave(why: string): void {
    const wasOpen = this.#phase === 'open';
    this.#phase = 'closed';
    this.#outbox.close();
    this.#deps.onClosed(this);
    this.executions.failAll(why);
    if (wasOpen) this.#noteDisconnected();
  }

  #noteDisconnected(): void {
    const { store, clock } = this.#deps;
    this.#note(store.disconnect(this.hostId, this.sessionId, clock.now()));
  }

  /** Closes the session if the host has a newer connection. */
  async #keepAlive(seen: Promise<boolean>): Promise<void> {
    if (await seen) return;
    this.close(HOST_CLOSE.replaced, 'replaced by a newer connection of the host');
  }

  #note(written: Promise<void>): void {
    written.catch((error) => this.#reports.notWritten(error));
  }

  #send(frame: GatewayFrame, executionId?: string): boolean {
    if (this.#isOver) return true;
    if (!this.#outbox.send(frame, executionId)) return false;
    if (this.#outbox.backlog > MAX_BACKLOG_BYTES)
      this.close(HOST_CLOSE.silent, 'the agent does not read its socket');
    return true;
  }

  #take(frame: WholeFrame): void {
    if (this.#isOver) return;
    if (frame.type === 'hello') {
      this.#greet(frame).catch((error) => {
        this.#reports.notAuthenticated(error);
        this.close(1011, 'the gateway failed to look up the host');
      });
    } else if (this.#phase !== 'open') this.close(HOST_CLOSE.protocol, 'the first frame must be hello');
    else if (frame.type === 'heartbeat') this.#acknowledge(frame);
    else if (frame.type === 'drain') this.#isDraining = true;
    else if (frame.type === 'auth') void this.#renew(frame);
    else this.executions.take(frame);
  }

  #expectLong(executionId: string | undefined): void {
    if (this.#phase !== 'open') this.close(HOST_CLOSE.protocol, 'the first frame must be hello, and whole');
    else if (executionId !== undefined) this.executions.expectLong(executionId);
  }

  async #greet(hello: AgentFrameOf<'hello'>): Promise<void> {
    const { store, clock } = this.#deps;
    if (this.#phase !== 'greeting') return this.close(HOST_CLOSE.protocol, 'hello was sent twice');
    this.#phase = 'checking';
    const unsupported = protocolFault(hello);
    if (unsupported) return this.#refuse(unsupported);
    const found = await store.find(this.hostId);
    if (this.#isOver) return;
    if (!found || found.namespaceId !== this.namespaceId)
      return this.close(HOST_CLOSE.revoked, 'the token does not belong to a registered host');
    const challenge = this.#challenge;
    const isRevoked = this.#deps.isRevoked(this.#principal);
    const fault = identityFault(hello, found, { challenge, isRevoked });
    if (fault) return this.#refuse(fault);
    this.#challenge = undefined;
    this.#host = found;
    // Capabilities in `hello` are ignored, because an agent could claim capabilities that no administrator has
    // registered.
    this.#capabilities = new Set(found.capabilities);
    const isElsewhere = await store.connect(this.hostId, this.sessionId, clock.now(), this.#deps.owner());
    // Waits until the other gateway has read the change. Before that, the other gateway could still send executions to
    // the host's previous session.
    if (isElsewhere) await this.#deps.spread();
    if (this.#isOver) return this.#noteDisconnected();
    this.#welcome(hello, found);
  }

  #refuse({ code, reason }: HelloFault): void {
    this.close(code, reason);
  }

  #welcome({ agentVersion }: AgentFrameOf<'hello'>, { name }: HostRecord): void {
    const { hostId, sessionId, namespaceId } = this;
    this.#phase = 'open';
    const services = Object.fromEntries(
      Object.entries(this.#deps.services).map(([service, methods]) => [service, Object.keys(methods)]),
    );
    this.#send({ type: 'welcome', sessionId, hostId, heartbeatMs: HOST_SOCKET.heartbeatMs, services });
    this.#reports.connected({ name, namespaceId, agentVersion });
    this.#deps.onOpen(this);
  }

  async #renew({ accessToken }: AgentFrameOf<'auth'>): Promise<void> {
    try {
      const next = await this.#deps.authenticate(accessToken);
      if (this.#isOver) return;
      if (next.hostId !== this.hostId || next.namespaceId !== this.namespaceId)
        return this.close(HOST_CLOSE.unauthenticated, 'the new token belongs to another host');
      this.#principal = next;
      this.#send({ type: 'renewed', expiresAt: Number.isFinite(next.expiresAt) ? next.expiresAt : null });
    } catch (error) {
      const reason = `the new token was refused: ${messageOf(error)}`.slice(0, MAX_REASON_CHARS);
      this.close(HOST_CLOSE.unauthenticated, reason);
    }
  }

  #acknowledge({ at }: AgentFrameOf<'heartbeat'>): void {
    const { store, clock } = this.#deps;
    this.#send({ type: 'ack', at });
    const now = clock.monotonic();
    if (now - this.#seenAt < SEEN_EVERY_MS) return;
    this.#seenAt = now;
    this.#note(this.#keepAlive(store.seen(this.hostId, this.sessionId, clock.now())));
  }
}
