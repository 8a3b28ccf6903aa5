import { type GatewayFrame, HOST_CLOSE, HOST_PROTOCOL, HOST_SOCKET } from '../../../../contracts/index.ts';
import { messageOf } from '../../../../kit/errors/errors.ts';
import { createChallenge, type OpenChallenge } from '../../../../kit/security/host-proof.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { minutes } from '../../../../kit/time/duration.ts';
import { createOutbox, type OutboxWire, type PlatformServices } from '../../../../plugins/index.ts';
import type { HostRecord, HostStore } from '../../../../store/ports/index.ts';
import type { Principal } from '../identity/authenticator.ts';
import { createHostExecutions, type HostExecutions } from './executions.ts';
import { type AgentFrameOf, createFrameReader, type WholeFrame } from './frames.ts';

/** Unsent bytes above which the agent counts as dead. */
const MAX_BACKLOG = 128 * 1024 * 1024;
/** Unsent bytes above which the agent gets no new executions. */
const BUSY_BACKLOG = 32 * 1024 * 1024;
const SILENT_MS = HOST_SOCKET.heartbeatMs * HOST_SOCKET.maxMissedHeartbeats;
/** Interval for storing `lastSeenAt`: five thousand agents must not write a row per heartbeat. */
const SEEN_EVERY_MS = minutes(1);

/** The socket of one agent. */
export interface Wire extends OutboxWire {
  /** Sends the close reason and closes the connection, by force after a second. */
  close(code: number, reason: string): void;
}

export interface HostSessionDeps {
  sessionId: string;
  wire: Wire;
  /** The principal whose token opened the socket. */
  principal: Principal;
  store: HostStore;
  services: PlatformServices;
  clock: Clock;
  logger: Logger;
  /** Resolves with the token's principal; rejects for an invalid token. */
  authenticate(accessToken: string): Promise<Principal>;
  isRevoked(principal: Principal): boolean;
  /** Called when the agent has proved its identity; the session may get executions from now on. */
  onOpen(session: HostSession): void;
  /** Called once, before the session's executions fail. */
  onClosed(session: HostSession): void;
}

/** One connection of a host, from its upgrade on. @spec Gateway: `/hosts/connect`; docs/decisions/0023 */
export interface HostSession {
  readonly sessionId: string;
  readonly hostId: string;
  readonly namespaceId: string;
  /** Set once the session is open. */
  readonly host: HostRecord | undefined;
  readonly capabilities: ReadonlySet<string>;
  readonly executions: HostExecutions;
  /** Whether it may get executions: authenticated and not draining. */
  readonly isOpen: boolean;
  /** Whether it has too much unsent data to get more executions. */
  readonly isBusy: boolean;
  start(): void;
  receive(text: string): void;
  /** Closes the session if a time limit passed: hello, heartbeat, token. */
  tick(): void;
  close(code: number, reason: string): void;
  /** Called when the socket was closed. */
  ended(): void;
}

export function createHostSession(deps: HostSessionDeps): HostSession {
  const { sessionId, wire, store, clock, logger } = deps;
  const { hostId, namespaceId } = deps.principal;
  const evidence = { hostId, sessionId };
  const openedAt = clock.monotonic();
  let phase: 'greeting' | 'checking' | 'open' | 'closed' = 'greeting';
  let principal = deps.principal;
  let challenge: OpenChallenge | undefined;
  let host: HostRecord | undefined;
  let capabilities: ReadonlySet<string> = new Set();
  let lastFrameAt = openedAt;
  let seenAt = openedAt;
  let reportedUnknown = false;
  let isDraining = false;

  const outbox = createOutbox(wire, HOST_SOCKET.gatewayFrameBytes);
  const reader = createFrameReader({
    clock,
    onFrame: take,
    onBegun: expectLong,
    onUnknown: reportUnknown,
    onFault: (code, why) => close(code, why.slice(0, 120)),
  });
  const executions = createHostExecutions({
    hostId,
    services: deps.services,
    clock,
    logger,
    send,
    backlog: () => outbox.backlog,
    withdraw: outbox.withdraw,
    refuse: (why) => close(HOST_CLOSE.protocol, why),
  });

  function send(frame: GatewayFrame, executionId?: string): boolean {
    if (phase === 'closed') return true;
    if (!outbox.send(frame, executionId)) return false;
    if (outbox.backlog > MAX_BACKLOG) close(HOST_CLOSE.silent, 'the agent does not read its socket');
    return true;
  }

  function close(code: number, reason: string): void {
    if (phase === 'closed') return;
    const wasOpen = phase === 'open';
    logger.diagnostic({
      domain: 'hosts',
      event: wasOpen ? 'host.disconnected' : 'host.refused',
      level: code === HOST_CLOSE.goingAway ? 'info' : 'warn',
      reasonCode: String(code),
      message: `The socket of host ${hostId} is closed: ${reason}`,
      outcome: wasOpen ? 'succeeded' : 'refused',
      evidence: { ...evidence, code },
    });
    wire.close(code, reason);
    leave(reason);
  }

  function leave(why: string): void {
    const wasOpen = phase === 'open';
    phase = 'closed';
    outbox.close();
    deps.onClosed(session);
    executions.failAll(why);
    if (wasOpen) note(store.disconnect(hostId, sessionId, clock.now()));
  }

  function note(written: Promise<void>): void {
    written.catch((error) => logger.warn(`The state of host ${hostId} could not be written`, { error }));
  }

  async function greet(hello: AgentFrameOf<'hello'>): Promise<void> {
    if (phase !== 'greeting') return close(HOST_CLOSE.protocol, 'hello was sent twice');
    phase = 'checking';
    if (hello.protocol !== HOST_PROTOCOL) {
      return close(HOST_CLOSE.protocol, `this gateway uses protocol ${HOST_PROTOCOL}, not ${hello.protocol}`);
    }
    const found = await store.find(hostId);
    if (isOver()) return;
    if (!found || found.namespaceId !== namespaceId) {
      return close(HOST_CLOSE.revoked, 'the token does not belong to a registered host');
    }
    if (found.revokedAt !== null || deps.isRevoked(principal)) return close(HOST_CLOSE.revoked, 'revoked');
    if (!hello.proof || !challenge?.accepts(hello.proof, hostId, found.publicKey)) {
      return close(HOST_CLOSE.unauthenticated, 'hello does not prove the private key of the host');
    }
    challenge = undefined;
    host = found;
    // Uses the registered capabilities, which an administrator can see; an agent's own claim could attract
    // executions.
    capabilities = new Set(found.capabilities);
    await store.connect(hostId, sessionId, clock.now());
    if (isOver()) return note(store.disconnect(hostId, sessionId, clock.now()));
    welcome(hello);
  }

  // A function, since the compiler would assume that `phase` is unchanged after an await.
  function isOver(): boolean {
    return phase === 'closed';
  }

  function welcome({ agentVersion }: AgentFrameOf<'hello'>): void {
    phase = 'open';
    const services = Object.fromEntries(
      Object.entries(deps.services).map(([name, service]) => [name, Object.keys(service)]),
    );
    send({ type: 'welcome', sessionId, hostId, heartbeatMs: HOST_SOCKET.heartbeatMs, services });
    logger.diagnostic({
      domain: 'hosts',
      event: 'host.connected',
      level: 'info',
      reasonCode: 'CONNECTED',
      message: `Host "${host?.name}" (${hostId}) is connected`,
      outcome: 'succeeded',
      evidence: { ...evidence, namespaceId, agentVersion },
    });
    deps.onOpen(session);
  }

  async function renew({ accessToken }: AgentFrameOf<'auth'>): Promise<void> {
    try {
      const next = await deps.authenticate(accessToken);
      if (isOver()) return;
      if (next.hostId !== hostId || next.namespaceId !== namespaceId) {
        return close(HOST_CLOSE.unauthenticated, 'the new token belongs to another host');
      }
      principal = next;
      send({ type: 'renewed', expiresAt: Number.isFinite(next.expiresAt) ? next.expiresAt : null });
    } catch (error) {
      close(HOST_CLOSE.unauthenticated, `the new token was refused: ${messageOf(error)}`.slice(0, 120));
    }
  }

  function beat({ at }: AgentFrameOf<'heartbeat'>): void {
    send({ type: 'ack', at });
    const now = clock.monotonic();
    if (now - seenAt < SEEN_EVERY_MS) return;
    seenAt = now;
    note(store.seen(hostId, sessionId, clock.now()));
  }

  function take(frame: WholeFrame): void {
    if (isOver()) return;
    if (frame.type === 'hello') {
      greet(frame).catch((error) => {
        logger.error(`Host ${hostId} could not be authenticated`, { error });
        close(1011, 'the gateway failed to look up the host');
      });
    } else if (phase !== 'open') close(HOST_CLOSE.protocol, 'the first frame must be hello');
    else if (frame.type === 'heartbeat') beat(frame);
    else if (frame.type === 'drain') isDraining = true;
    else if (frame.type === 'auth') void renew(frame);
    else executions.take(frame);
  }

  function expectLong(executionId: string | undefined): void {
    if (phase !== 'open') close(HOST_CLOSE.protocol, 'the first frame must be hello, and whole');
    else if (executionId !== undefined) executions.expectLong(executionId);
  }

  /** Once per session: a newer agent must not fill the log. */
  function reportUnknown(type: string): void {
    if (reportedUnknown) return;
    reportedUnknown = true;
    logger.diagnostic({
      domain: 'hosts',
      event: 'host.unknown_frame',
      level: 'warn',
      reasonCode: 'UNKNOWN_FRAME',
      message: `Host ${hostId} sends frames of the unknown type "${type}", which are ignored`,
      outcome: 'degraded',
      evidence: { ...evidence, type },
    });
  }

  const session: HostSession = {
    sessionId,
    hostId,
    namespaceId,
    get host() {
      return host;
    },
    get capabilities() {
      return capabilities;
    },
    executions,
    get isOpen() {
      return phase === 'open' && !isDraining;
    },
    get isBusy() {
      return outbox.backlog > BUSY_BACKLOG;
    },
    start() {
      challenge = createChallenge();
      const { nonce, publicKey } = challenge;
      send({ type: 'challenge', sessionId, nonce, publicKey });
    },
    receive(text) {
      if (isOver()) return;
      lastFrameAt = clock.monotonic();
      reader.read(text);
    },
    tick() {
      const now = clock.monotonic();
      if (phase === 'closed') return;
      // In every phase, so that a revoked host does not stay connected until its hello times out.
      if (deps.isRevoked(principal)) close(HOST_CLOSE.revoked, 'revoked');
      else if (clock.now() >= principal.expiresAt) close(HOST_CLOSE.unauthenticated, 'the token has expired');
      else if (phase !== 'open') {
        if (now - openedAt >= HOST_SOCKET.helloMs) close(HOST_CLOSE.silent, 'no hello in time');
      } else if (now - lastFrameAt >= SILENT_MS) close(HOST_CLOSE.silent, 'silent');
      else if (now - (reader.latestPartAt ?? now) >= SILENT_MS)
        close(HOST_CLOSE.silent, 'the rest of a frame did not arrive');
    },
    close,
    ended() {
      if (isOver()) return;
      logger.diagnostic({
        domain: 'hosts',
        event: 'host.disconnected',
        level: 'info',
        reasonCode: 'CONNECTION_LOST',
        message: `Host ${hostId} is disconnected`,
        outcome: 'succeeded',
        evidence,
      });
      leave('the connection was lost');
    },
  };
  return session;
}
