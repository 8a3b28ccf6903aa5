import {
  type CommandResult,
  type ExecutionRequest,
  HOST_CLOSE,
  type HostPlugin,
  type HostTarget,
} from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import { type Clock, every, systemClock } from '../../../../kit/time/clock.ts';
import { seconds } from '../../../../kit/time/duration.ts';
import type { RunOptions } from '../../../../plugins/index.ts';
import type { HostStore } from '../../../../store/ports/index.ts';
import type { HostSession } from './session.ts';

/**
 * Interval for checking the time limits of all sessions; one timer per session would cost more at five
 * thousand.
 */
const SWEEP_MS = seconds(1);
/** Time for in-flight executions to finish when the gateway stops. */
const DRAIN_MS = seconds(5);
const DRAIN_POLL_MS = 50;

export interface HostSessions {
  /** Sessions that may get executions. */
  readonly connected: number;
  readonly running: number;
  /** Registers a socket that has not been authenticated yet; its time limits start now. */
  greet(session: HostSession): void;
  /** Makes the session its host's current one; closes the previous one with 4409. */
  adopt(session: HostSession): void;
  remove(session: HostSession): void;
  /**
   * Runs on the least loaded matching host of the namespace. Throws HOST_UNAVAILABLE without one, or when the
   * connection is lost: an execution is sent only once. Throws SERVICE_UNAVAILABLE when all are busy.
   */
  run(
    request: ExecutionRequest,
    plugin: HostPlugin,
    target: HostTarget,
    options: RunOptions,
  ): Promise<CommandResult>;
  /** Closes sessions with a revoked host or token. */
  checkRevoked(): void;
  /**
   * Accepts no more executions, waits a moment for running ones, then tells the agents to reconnect later.
   */
  drain(): Promise<void>;
  close(): void;
}

/** Hosts connected to this process. @spec docs/operations.md "Agents" */
export function createHostSessions(clock: Clock): HostSessions {
  const greeting = new Set<HostSession>();
  const byHost = new Map<string, HostSession>();
  /** Order of the latest executions, for round robin between equally loaded sessions. */
  const lastGiven = new WeakMap<HostSession, number>();
  let given = 0;
  let isDraining = false;

  const all = (): HostSession[] => [...greeting, ...byHost.values()];
  const stop = every(clock, SWEEP_MS, () => {
    for (const session of all()) session.tick();
  });

  function choose(request: ExecutionRequest, target: HostTarget): HostSession {
    let best: HostSession | undefined;
    let busy = 0;
    for (const session of candidates(target)) {
      if (session.namespaceId !== request.tenantId || !session.isOpen || !fits(session, target)) continue;
      if (session.isBusy) busy++;
      else if (!best || isBefore(session, best)) best = session;
    }
    if (best && !isDraining) return best;
    throw busy > 0 ? allBusy(request, busy) : unavailable(request, target);
  }

  function candidates({ hostId }: HostTarget): Iterable<HostSession> {
    if (hostId === undefined) return byHost.values();
    const session = byHost.get(hostId);
    return session ? [session] : [];
  }

  function isBefore(left: HostSession, right: HostSession): boolean {
    const load = left.executions.size - right.executions.size;
    return load !== 0 ? load < 0 : (lastGiven.get(left) ?? 0) < (lastGiven.get(right) ?? 0);
  }

  const running = (): number => {
    let sum = 0;
    for (const { executions } of byHost.values()) sum += executions.size;
    return sum;
  };

  return {
    get connected() {
      return byHost.size;
    },
    get running() {
      return running();
    },
    greet: (session) => greeting.add(session),
    adopt(session) {
      greeting.delete(session);
      const former = byHost.get(session.hostId);
      byHost.set(session.hostId, session);
      former?.close(HOST_CLOSE.replaced, 'replaced by a newer connection of the host');
    },
    remove(session) {
      greeting.delete(session);
      // A late close of a replaced session must not unregister its successor.
      if (byHost.get(session.hostId) === session) byHost.delete(session.hostId);
    },
    async run(request, plugin, target, options) {
      const session = choose(request, target);
      lastGiven.set(session, ++given);
      return session.executions.run(request, plugin, options);
    },
    checkRevoked() {
      for (const session of all()) session.tick();
    },
    async drain() {
      isDraining = true;
      // Real time even under a test clock, since it waits for other machines.
      const until = systemClock.monotonic() + DRAIN_MS;
      while (running() > 0 && systemClock.monotonic() < until)
        await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS));
      for (const session of all()) session.close(HOST_CLOSE.goingAway, 'the gateway is stopping');
    },
    close: stop,
  };
}

function fits({ host, capabilities }: HostSession, { labels = {}, capability }: HostTarget): boolean {
  if (capability !== undefined && !capabilities.has(capability)) return false;
  return Object.entries(labels).every(
    ([name, value]) => host !== undefined && Object.hasOwn(host.labels, name) && host.labels[name] === value,
  );
}

function unavailable({ plugin, tenantId }: ExecutionRequest, target: HostTarget): PlatformError {
  const asked =
    Object.keys(target).length === 0 ? 'No host' : `No host that matches ${JSON.stringify(target)}`;
  return new PlatformError(
    'HOST_UNAVAILABLE',
    `${asked} of namespace ${tenantId} is connected, and the plugin ${plugin.id} runs on hosts; \`svc hosts list\` shows them.`,
    { details: { pluginId: plugin.id, target } },
  );
}

/** The execution was never sent, so it is safe to retry. */
function allBusy({ plugin }: ExecutionRequest, hosts: number): PlatformError {
  return new PlatformError(
    'SERVICE_UNAVAILABLE',
    `The ${hosts} hosts that plugin ${plugin.id} may run on are still receiving large inputs; retry in a moment.`,
    { headers: { 'retry-after': '5' }, details: { pluginId: plugin.id, retryAfterSeconds: 5 } },
  );
}

/** A killed gateway could not store that its sockets were closed. */
export async function clearStaleSessions(store: HostStore, now: number): Promise<void> {
  const limit = 1000;
  for (let after: string | undefined; ; ) {
    const page = await store.list(undefined, { limit, ...(after ? { after } : {}) });
    await Promise.all(
      page.flatMap(({ hostId, sessionId, lastSeenAt }) =>
        sessionId === null ? [] : [store.disconnect(hostId, sessionId, lastSeenAt ?? now)],
      ),
    );
    if (page.length < limit) return;
    after = page.at(-1)!.hostId;
  }
}
