import type {
  Alert,
  AlertDetails,
  AlertNotification,
  AlertTestResult,
  Caller,
} from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Random } from '../../../../kit/security/random.ts';
import type { AlertFilter, AlertNotificationRecord } from '../../../../store/ports/index.ts';
import { pageOf } from '../page.ts';
import type { AlertChanges } from './alert-changes.ts';
import type { ChannelAdmin } from './channel-admin.ts';
import type { ChannelCalls } from './channel-calls.ts';
import type { AlertState } from './grouping.ts';
import type { Notification, NotificationBody } from './notification.ts';
import type { RuleAdmin, RuleAdminDeps } from './rule-admin.ts';
import type { Channel } from './rule-book.ts';
import type { Scoped } from './setting-scope.ts';
import { alertOf } from './work-set.ts';

export interface AlertViewsDeps extends RuleAdminDeps {
  changes: AlertChanges;
  rules: RuleAdmin;
  channels: ChannelAdmin;
  calls: Pick<ChannelCalls, 'send'>;
  random: Random;
  publicUrl(): string;
}

const MAX_NOTIFICATIONS = 200;

/** Alerts of the API, and test notifications. */
export class AlertViews {
  readonly #deps: AlertViewsDeps;

  constructor(deps: AlertViewsDeps) {
    this.#deps = deps;
  }

  async list(
    scoped: Scoped,
    { limit, cursor, ...filter }: Omit<AlertFilter, 'before'> & { cursor?: string | undefined },
  ) {
    const { store, scope } = this.#deps;
    const rows = await store.list({
      ...filter,
      namespaceId: scope.list(scoped),
      before: cursor,
      limit: limit + 1,
    });
    return pageOf(
      rows,
      limit,
      ({ id }) => id,
      (row) => this.#view(alertOf(row)),
    );
  }

  async get(caller: Caller, id: string): Promise<AlertDetails> {
    const alert = await this.#find(caller, id);
    const found = await this.#deps.store.notificationsOf(alert.groupKey, alert.firstAt, MAX_NOTIFICATIONS);
    const own = found.filter(({ body }) => (JSON.parse(body) as NotificationBody).alertIds.includes(id));
    return { ...this.#view(alert), notifications: own.map(notificationView) };
  }

  async acknowledge(caller: Caller, id: string): Promise<Alert> {
    const { changes, clock } = this.#deps;
    await this.#find(caller, id);
    await changes.run(async (set) => {
      const alert = set.known(await this.#find(caller, id));
      if (alert.state === 'resolved') throw new PlatformError('CONFLICT', 'The alert has ended.');
      alert.acknowledgedAt ??= clock.now();
      alert.acknowledgedBy ??= caller.hostId;
      set.changeAlert(alert);
    });
    return this.#view(await this.#find(caller, id));
  }

  async resolve(caller: Caller, id: string): Promise<Alert> {
    const { changes, clock, book } = this.#deps;
    await book.refresh();
    await changes.run(async (set) => {
      const alert = await this.#find(caller, id);
      if (alert.state === 'resolved') throw new PlatformError('CONFLICT', 'The alert has ended.');
      await changes.resolve(set, alert, { now: clock.now() });
    });
    return this.#view(await this.#find(caller, id));
  }

  /** Sends a test to one channel, or to the channels of a rule. */
  async test(scoped: Scoped, { channel, rule }: { channel?: string | undefined; rule?: string | undefined }) {
    const { rules, channels, book } = this.#deps;
    if (channel !== undefined)
      return { results: [await this.#try(await channels.find(scoped, channel), channel)] };
    const { namespaceId, settings } = await rules.find(scoped, rule!);
    const results = settings.channels.map(async (name) => {
      const found = book.channel(namespaceId, name);
      return found ? this.#try(found, rule!) : missing(name);
    });
    return { results: await Promise.all(results) };
  }

  async #try(channel: Channel, subject: string): Promise<AlertTestResult> {
    const { calls, random, clock } = this.#deps;
    const now = clock.now();
    const notification: Notification = {
      ...{ id: `ntf_${random.uuid()}`, createdAt: now, isTest: true, reason: 'firing', rule: subject },
      ...{ kind: 'run.failed', severity: 'info', incident: `test_${random.uuid()}`, firing: 0, uncounted: 0 },
      ...{ total: 0, alertIds: [], alerts: [], attempts: [] },
    };
    const { ok, status, error, durationMs } = await calls.send(channel, notification);
    return { channel: channel.name, type: channel.settings.type, ok, status, error, durationMs };
  }

  async #find(caller: Caller, id: string): Promise<AlertState> {
    const row = await this.#deps.store.alert(id);
    if (!row || !this.#deps.scope.maySee(caller, row.namespaceId))
      throw new PlatformError('NOT_FOUND', `There is no alert "${id}"; \`svc alerts list\` shows them.`);
    return alertOf(row);
  }

  #view(alert: AlertState): Alert {
    const { id, namespaceId, rule, kind, severity, state, object, title, message, path, count } = alert;
    const { firstAt, lastAt, resolvedAt, acknowledgedAt, acknowledgedBy, silenceId } = alert;
    return {
      ...{ id, namespaceId, rule, kind, severity, state, object, title, message, count },
      link: path === null ? null : `${this.#deps.publicUrl()}${path}`,
      ...{ firstAt, lastAt, resolvedAt, acknowledgedAt, acknowledgedBy, silenceId },
    };
  }
}

const missing = (channel: string): AlertTestResult => ({
  ...{ channel, type: null, ok: false, status: null, durationMs: 0 },
  error: `There is no channel "${channel}".`,
});

function notificationView({
  id,
  channel,
  status,
  createdAt,
  nextAt,
  body,
}: AlertNotificationRecord): AlertNotification {
  const { reason, total, attempts } = JSON.parse(body) as NotificationBody;
  const sentAt = attempts.find(({ ok }) => ok)?.at ?? null;
  return { id, channel, reason, status, createdAt, sentAt, nextAttemptAt: nextAt, alerts: total, attempts };
}
