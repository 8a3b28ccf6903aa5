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
import { fitsTarget } from './fits-target.ts';
import type { HostSession } from './session.ts';

/**
 * Interval at which one timer checks all sessions. A separate timer for each of five thousand sessions would cost more
 * CPU time.
 */
const SWEEP_MS = seconds(1);
/** Maximum time for in-flight executions to finish when the gateway stops. */
const DRAIN_MS = seconds(5);
const DRAIN_POLL_MS = 50;
const REPLACED = 'replaced by a newer connection of the host';

/** Sessions of the hosts that are connected to this process. @spec docs/operations.md "Agents" */
export class HostSessions {
  /** Sessions that have not been authenticated yet. */
  readonly #greeting = new Set<HostSession>();
  readonly #byHost = new Map<string, HostSession>();
  /** Sequence number of each session's latest execution, for round robin between sessions with equal load. */
  readonly #lastGiven = new WeakMap<HostSession, number>();
  #given = 0;
  #isDraining = false;
  readonly #stopSweeping: () => void;

  constructor(clock: Clock) {
    this.#stopSweeping = every(clock, SWEEP_MS, () => this.checkLimits());
  }

  get connected(): number {
    return this.#byHost.size;
  }

  get running(): number {
    let sum = 0;
    for (const { executions } of this.#byHost.values()) sum += executions.size;
    return sum;
  }

  /** Adds a session that is not authenticated yet. */
  greet(session: HostSession): void {
    this.#greeting.add(session);
  }

  /** Makes this session the current session of its host. Closes the host's previous session with code 4409. */
  adopt(session: HostSession): void {
    this.#greeting.delete(session);
    const former = this.#byHost.get(session.hostId);
    this.#byHost.set(session.hostId, session);
    former?.close(HOST_CLOSE.replaced, REPLACED);
  }

  remove(session: HostSession): void {
    this.#greeting.delete(session);
    // The host might already have a newer session, which must stay registered.
    if (this.#byHost.get(session.hostId) === session) this.#byHost.delete(session.hostId);
  }

  /**
   * Runs an execution on the least loaded matching host of the namespace. Throws HOST_UNAVAILABLE if no matching host
   * is connected or the connection is lost. Throws SERVICE_UNAVAILABLE if all matching hosts are busy.
   */
  async run(
    request: ExecutionRequest,
    plugin: HostPlugin,
    target: HostTarget,
    options: RunOptions,
  ): Promise<CommandResult> {
    const session = this.#choose(request, target);
    this.#lastGiven.set(session, ++this.#given);
    return session.executions.run(request, plugin, options);
  }

  /** Returns whether a matching host that is connected to this process can take an execution now. */
  canRun(request: ExecutionRequest, target: HostTarget): boolean {
    return this.#search(request, target).best !== undefined;
  }

  /**
   * Closes the sessions of hosts that have reconnected to another gateway. If `hostIds` is null, all hosts are checked.
   */
  async closeReplaced(hostIds: readonly string[] | null, store: Pick<HostStore, 'find'>): Promise<void> {
    const hosts = hostIds ?? [...this.#byHost.keys()];
    await Promise.all(hosts.map((hostId) => this.#closeIfReplaced(hostId, store)));
  }

  /** Closes sessions whose host or token was revoked, and sessions that exceed a time limit. */
  checkLimits(): void {
    for (const session of this.#all()) session.tick();
  }

  /** Rejects new executions, waits at most 5 s for running executions, and then closes all sessions. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    // Real time is used even with a test clock, because the executions run on other machines.
    const until = systemClock.monotonic() + DRAIN_MS;
    while (this.running > 0 && systemClock.monotonic() < until)
      await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS));
    for (const session of this.#all()) session.close(HOST_CLOSE.goingAway, 'the gateway is stopping');
  }

  close(): void {
    this.#stopSweeping();
  }

  async #closeIfReplaced(hostId: string, store: Pick<HostStore, 'find'>): Promise<void> {
    const session = this.#byHost.get(hostId);
    if (!session) return;
    const host = await store.find(hostId);
    if (host?.sessionId !== session.sessionId) session.close(HOST_CLOSE.replaced, REPLACED);
  }

  #all(): HostSession[] {
    return [...this.#greeting, ...this.#byHost.values()];
  }

  #choose(request: ExecutionRequest, target: HostTarget): HostSession {
    const { best, busy } = this.#search(request, target);
    if (best) return best;
    throw busy > 0 ? allBusy(request, busy) : unavailable(request, target);
  }

  #search(request: ExecutionRequest, target: HostTarget): { best: HostSession | undefined; busy: number } {
    let best: HostSession | undefined;
    let busy = 0;
    for (const session of this.#candidates(target)) {
      if (session.namespaceId !== request.tenantId || !session.isOpen || !fits(session, target)) continue;
      if (session.isBusy) busy++;
      else if (!best || this.#isBefore(session, best)) best = session;
    }
    return { best: this.#isDraining ? undefined : best, busy };
  }

  #candidates({ hostId }: HostTarget): Iterable<HostSession> {
    if (hostId === undefined) return this.#byHost.values();
    const session = this.#byHost.get(hostId);
    return session ? [session] : [];
  }

  #isBefore(left: HostSession, right: HostSession): boolean {
    const load = left.executions.size - right.executions.size;
    if (load !== 0) return load < 0;
    return (this.#lastGiven.get(left) ?? 0) < (this.#lastGiven.get(right) ?? 0);
  }
}

function fits({ host, capabilities }: HostSession, target: HostTarget): boolean {
  return fitsTarget({ labels: host?.labels ?? {}, capabilities }, target);
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

/** Returns the error for an execution that was not sent to any host. The caller can safely retry. */
function allBusy({ plugin }: ExecutionRequest, hosts: number): PlatformError {
  return new PlatformError(
    'SERVICE_UNAVAILABLE',
    `The ${hosts} hosts that plugin ${plugin.id} may run on are still receiving large inputs; retry in a moment.`,
    { headers: { 'retry-after': '5' }, details: { pluginId: plugin.id, retryAfterSeconds: 5 } },
  );
}
