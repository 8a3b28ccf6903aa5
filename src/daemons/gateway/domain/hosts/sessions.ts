import {
  type CommandResult,
  type ExecutionRequest,
  HOST_CLOSE,
  type HostPlugin,
  type HostTarget,
} from '../../../../contracts/index.ts';
import { type Clock, every, systemClock } from '../../../../kit/clock.ts';
import { seconds } from '../../../../kit/duration.ts';
import { PlatformError } from '../../../../kit/errors.ts';
import type { RunOptions } from '../../../../plugins/index.ts';
import type { HostStore } from '../../../../store/ports/index.ts';
import type { HostSession } from './session.ts';

/** Limits of time are looked at this often, over all sessions: a timer each would cost more at five thousand. */
const SWEEP_MS = seconds(1);
/** How long executions under way may take to finish once the gateway stops. */
const DRAIN_MS = seconds(5);
const DRAIN_POLL_MS = 50;

export interface HostSessions {
  /** Sessions that may be given work. */
  readonly connected: number;
  readonly running: number;
  /** A socket that has not proved itself yet; its limits of time count from now. */
  greet(session: HostSession): void;
  /** The session is its host's one from now on; an older one is closed with 4409. */
  adopt(session: HostSession): void;
  remove(session: HostSession): void;
  /**
   * Runs on the host of the namespace that fits and has least to do. Throws HOST_UNAVAILABLE when none does, or when it
   * is lost meanwhile: an execution is sent once, to one host. Throws SERVICE_UNAVAILABLE when all that fit have much to
   * read yet.
   */
  run(
    request: ExecutionRequest,
    plugin: HostPlugin,
    target: HostTarget,
    options: RunOptions,
  ): Promise<CommandResult>;
  /** Closes those whose host or token is revoked. */
  checkRevoked(): void;
  /** Takes no more work, waits a moment for what runs, then tells the agents to come back later. */
  drain(): Promise<void>;
  close(): void;
}

/** The hosts that are connected to this process. @spec docs/operations.md "Agents" */
export function createHostSessions(clock: Clock): HostSessions {
  const greeting = new Set<HostSession>();
  const byHost = new Map<string, HostSession>();
  /** In the order of their latest work, so that equals take turns. */
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
      // The late close of a replaced session must not unregister the one that replaced it.
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
      // Real time: what is waited for is other machines.
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
  const asked = Object.keys(target).length === 0 ? 'No host' : `No host that fits ${JSON.stringify(target)}`;
  return new PlatformError(
    'HOST_UNAVAILABLE',
    `${asked} of namespace ${tenantId} is connected, and the plugin ${plugin.id} runs on hosts; \`svc hosts list\` shows them.`,
    { details: { pluginId: plugin.id, target } },
  );
}

/** Never sent, so that it may safely be sent again. */
function allBusy({ plugin }: ExecutionRequest, hosts: number): PlatformError {
  return new PlatformError(
    'SERVICE_UNAVAILABLE',
    `The ${hosts} hosts that plugin ${plugin.id} may run on are still being sent large inputs; try again in a moment.`,
    { headers: { 'retry-after': '5' }, details: { pluginId: plugin.id, retryAfterSeconds: 5 } },
  );
}

/** A gateway that was killed could not note that its sockets went with it. */
export async function forgetFormerSessions(store: HostStore, now: number): Promise<void> {
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
