import { messageOf, PlatformError } from '../../kit/errors/errors.ts';
import type { Logger } from '../../kit/telemetry/logger.ts';
import type { Clock } from '../../kit/time/clock.ts';
import { seconds } from '../../kit/time/duration.ts';
import type { MemberRecord, MemberStore, NewMember } from '../../store/ports/index.ts';

export const LEASE_MS = seconds(10);
export const RENEW_MS = seconds(3);

export interface MembershipDeps {
  store: MemberStore;
  member: Omit<NewMember, 'leaseMs'>;
  clock: Clock;
  logger: Logger;
  /** Callback that is called once if another process has ended this member. The service must stop after this call. */
  onLost(error: PlatformError): void;
}

/** Supplies the fence token that is written into stored rows. */
export interface Fence {
  /**
   * Returns the fence token. Throws SERVICE_UNAVAILABLE without a valid lease, because another member might have taken
   * over the work of this member.
   */
  require(): number;
}

/**
 * Membership of this process among the processes that share its store. The only member of a store needs no lease,
 * because a file lock protects the store. @spec docs/decisions/0218
 */
export class Membership implements Fence {
  readonly fence: number;
  readonly #deps: MembershipDeps;
  readonly #leaseMs: number | null;
  readonly #sweepers: Array<() => Promise<void>> = [];
  readonly #lostListeners: Array<() => void> = [];
  /** End of the lease on the monotonic clock of this process. Never later than the end of the stored lease. */
  #heldUntil: number;
  /** Time since which every renewal has succeeded. Undefined after a failure. */
  #inTouchSince: number | undefined;
  #url: string | null = null;
  #isDraining = false;
  #isOver = false;
  #cancelRenewal: () => void = () => {};
  #working: Promise<void> = Promise.resolve();

  private constructor(deps: MembershipDeps, fence: number, askedAt: number) {
    this.#deps = deps;
    this.fence = fence;
    this.#leaseMs = leaseOf(deps.member);
    this.#heldUntil = askedAt + LEASE_MS;
    this.#inTouchSince = askedAt;
    if (this.#leaseMs !== null) this.#renewLater();
  }

  /** Adds this process to the members, and ends earlier members of the same node and kind. */
  static async join(deps: MembershipDeps): Promise<Membership> {
    const askedAt = deps.clock.monotonic();
    const fence = await deps.store.join({ ...deps.member, leaseMs: leaseOf(deps.member) });
    return new Membership(deps, fence, askedAt);
  }

  get instance(): string {
    return this.#deps.member.instance;
  }

  require(): number {
    if (this.isHeld) return this.fence;
    throw new PlatformError(
      'SERVICE_UNAVAILABLE',
      'This node has lost its lease on the store, and another may have taken over its work; try again in a moment.',
      { headers: { 'retry-after': '5' }, details: { retryAfterSeconds: 5 } },
    );
  }

  get isHeld(): boolean {
    if (this.#isOver) return false;
    return this.#leaseMs === null || this.#deps.clock.monotonic() < this.#heldUntil;
  }

  /** Returns the other live members of this kind. */
  async others(): Promise<MemberRecord[]> {
    const { store, member } = this.#deps;
    return (await store.live(member.kind)).filter(({ fence }) => fence !== this.fence);
  }

  /** Registers work that takes over or frees the rows of ended members. The work must be safe to repeat. */
  onEnded(sweep: () => Promise<void>): void {
    this.#sweepers.push(sweep);
  }

  /** Registers a function that is called once if another process ends this member. */
  onLost(lost: () => void): void {
    this.#lostListeners.push(lost);
  }

  /** Sweeps the rows of members that have ended. */
  async sweep(): Promise<void> {
    const { store, member } = this.#deps;
    const ended = await store.unswept(member.kind);
    await Promise.all(this.#sweepers.map((sweep) => sweep()));
    if (ended.length === 0) return;
    // The caller does not wait for this write, because repeating the sweep is harmless.
    this.#working = this.#working.then(() => store.swept(ended)).catch((error) => this.#warn(error));
  }

  /** Stores the address of this process, so that other members can call it. */
  announce(url: string): void {
    this.#url = url;
    this.#cancelRenewal();
    this.#renewNow();
  }

  /**
   * Marks this process as stopping. Other members then send only calls that no other process can answer. Never rejects.
   */
  withdraw(): Promise<void> {
    this.#isDraining = true;
    this.#cancelRenewal();
    this.#renewNow();
    return this.#working;
  }

  async leave(): Promise<void> {
    this.#isOver = true;
    this.#cancelRenewal();
    await this.#working;
    const { store, logger } = this.#deps;
    // A shutdown must not fail while the store is unavailable. If this call fails, the other members wait until the
    // lease expires.
    await store.leave(this.fence).catch((error) => {
      logger.warn(`This process could not leave the members of the store: ${messageOf(error)}`, { error });
    });
  }

  #renewLater(): void {
    this.#cancelRenewal = this.#deps.clock.after(RENEW_MS, () => this.#renewNow());
  }

  #renewNow(): void {
    this.#working = this.#working
      .then(() => this.#renew())
      .catch((error) => this.#warn(error))
      .finally(() => {
        if (!this.#isOver && this.#leaseMs !== null) this.#renewLater();
      });
  }

  #warn(error: unknown): void {
    this.#deps.logger.error('The membership could not be written to the store', { error });
  }

  async #renew(): Promise<void> {
    if (this.#isOver) return;
    const { clock } = this.#deps;
    const askedAt = clock.monotonic();
    const isKept = await this.#renewLease();
    const answeredAt = clock.monotonic();
    // If this renewal was slow, the store might also have been too slow for renewals of other members.
    const isInTouch = answeredAt - askedAt < RENEW_MS && askedAt < this.#heldUntil;
    this.#inTouchSince = isInTouch ? (this.#inTouchSince ?? askedAt) : answeredAt;
    if (!isKept) return this.#lose();
    this.#heldUntil = askedAt + LEASE_MS;
    if (this.#leaseMs !== null) await this.#takeOver();
  }

  async #renewLease(): Promise<boolean> {
    try {
      return await this.#deps.store.renew(this.fence, {
        leaseMs: this.#leaseMs,
        url: this.#url,
        isDraining: this.#isDraining,
      });
    } catch (error) {
      this.#inTouchSince = undefined;
      throw error;
    }
  }

  /**
   * Ends members whose lease has expired. An outage of the store also expires the leases of running members. Therefore,
   * this member must first have renewed its own lease for a full lease duration.
   */
  async #takeOver(): Promise<void> {
    const { store, member, clock } = this.#deps;
    if (clock.monotonic() - (this.#inTouchSince ?? Infinity) >= LEASE_MS)
      await store.endExpired(member.kind, this.fence);
    if ((await store.unswept(member.kind)).length > 0) await this.sweep();
  }

  #lose(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const lost of this.#lostListeners) lost();
    const { instance, kind } = this.#deps.member;
    this.#deps.onLost(
      new PlatformError(
        'CONFLICT',
        `Another process has ended this ${kind}: its lease had expired, or a second node runs as "${instance}". Give each node a data folder or SVC_INSTANCE of its own.`,
        { details: { instance, kind, fence: this.fence } },
      ),
    );
  }
}

const leaseOf = ({ isSole }: Pick<NewMember, 'isSole'>): number | null => (isSole ? null : LEASE_MS);
