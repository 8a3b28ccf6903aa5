import type { Random } from '../../../../kit/security/random.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { hours, minutes, seconds } from '../../../../kit/time/duration.ts';
import type { AlertNotificationRecord, AlertStore } from '../../../../store/ports/index.ts';
import type { Attempted, ChannelCalls } from './channel-calls.ts';
import type { NotificationBody } from './notification.ts';
import type { Channel, RuleBook } from './rule-book.ts';

export interface SenderDeps {
  store: AlertStore;
  book: RuleBook;
  calls: Pick<ChannelCalls, 'send'>;
  clock: Clock;
  random: Random;
  logger: Logger;
  onAttempt(channel: Channel, attempt: Attempted): void;
}

const MAX_DUE = 500;
/** Time for which an attempt owns its notification. After a kill, the next attempt starts then. */
const LEASE_MS = minutes(1);
/** Times between attempts. A notification is given up after the last one, about 28 hours after the first attempt. */
export const RETRY_DELAYS_MS: readonly number[] = [
  ...[seconds(5), seconds(30), minutes(2), minutes(10), minutes(30)],
  ...[hours(1), hours(2), hours(4), hours(8), hours(12)],
];

/** Sends the stored notifications. A slow or failing channel delays no other channel. @spec docs/decisions/0258 */
export class Sender {
  readonly #deps: SenderDeps;
  /** Work of the channels, by key. A channel sends one notification at a time. */
  readonly #busy = new Map<string, Promise<void>>();
  #isClosed = false;

  constructor(deps: SenderDeps) {
    this.#deps = deps;
  }

  /** Starts the notifications that are due, and does not wait for their results. */
  async start(): Promise<void> {
    const { store, clock, logger } = this.#deps;
    const due = await store.dueNotifications(clock.now(), MAX_DUE);
    for (const [key, notifications] of Map.groupBy(due, ({ namespaceId, channel }) =>
      JSON.stringify([namespaceId, channel]),
    )) {
      if (this.#busy.has(key) || this.#isClosed) continue;
      const work = this.#sendAll(notifications)
        .catch((error) => logger.warn('Notifications of an alert channel could not be sent', { error }))
        .finally(() => this.#busy.delete(key));
      this.#busy.set(key, work);
    }
  }

  /** Resolves when all started attempts have ended. */
  async idle(): Promise<void> {
    await Promise.all(this.#busy.values());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.idle();
  }

  /** After a failure, the other notifications of the channel wait as long, without an attempt of their own. */
  async #sendAll(notifications: readonly AlertNotificationRecord[]): Promise<void> {
    let waitUntil: number | null = null;
    for (const notification of notifications) {
      if (this.#isClosed) return;
      if (waitUntil === null) waitUntil = await this.#sendOne(notification);
      else await this.#update(notification, { nextAt: waitUntil });
    }
  }

  /** Returns the time of the next attempt after a failure, or null. */
  async #sendOne(record: AlertNotificationRecord): Promise<number | null> {
    const { store, book, calls, clock, onAttempt } = this.#deps;
    const body = JSON.parse(record.body) as NotificationBody;
    const channel = book.channel(record.namespaceId, record.channel);
    if (!channel) {
      await this.#update(record, { status: 'dropped', nextAt: null });
      return null;
    }
    const leased = { ...record, version: record.version + 1, nextAt: clock.now() + LEASE_MS };
    // Another gateway has taken the notification.
    if (!(await store.commit({ notifications: [leased] }))) return null;
    const { id, createdAt } = record;
    const attempted = await calls.send(channel, { ...body, id, createdAt });
    onAttempt(channel, attempted);
    const { isFinal, ...attempt } = attempted;
    const attempts = [...body.attempts, attempt];
    const delay = RETRY_DELAYS_MS[attempts.length - 1];
    const isDead = !attempt.ok && (isFinal || delay === undefined);
    const nextAt = attempt.ok || isDead ? null : clock.now() + this.#jittered(delay!);
    await this.#update(leased, {
      status: attempt.ok ? 'sent' : isDead ? 'dead' : 'pending',
      nextAt,
      body: JSON.stringify({ ...body, attempts }),
    });
    if (!attempt.ok) this.#report(channel, attempt.error, isDead);
    return nextAt;
  }

  #jittered(delayMs: number): number {
    return Math.round(delayMs * (0.9 + this.#deps.random.fraction() / 5));
  }

  async #update(
    record: AlertNotificationRecord,
    change: Partial<Pick<AlertNotificationRecord, 'status' | 'nextAt' | 'body'>>,
  ): Promise<void> {
    await this.#deps.store.commit({ notifications: [{ ...record, ...change, version: record.version + 1 }] });
  }

  #report({ namespaceId, name }: Channel, error: string | null, isDead: boolean): void {
    this.#deps.logger.diagnostic(
      {
        domain: 'alerts',
        event: 'alerts.not_sent',
        level: isDead ? 'error' : 'warn',
        reasonCode: isDead ? 'ALERT_GIVEN_UP' : 'ALERT_NOT_SENT',
        message: `The alert channel ${name} failed: ${error}`,
        outcome: 'failed',
        evidence: { channel: name, namespaceId },
      },
      namespaceId === '*' ? {} : { tenantId: namespaceId },
    );
  }
}
