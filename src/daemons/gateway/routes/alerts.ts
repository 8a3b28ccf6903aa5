import {
  acknowledgeAlert,
  type Caller,
  createAlertChannel,
  createAlertRule,
  createAlertSilence,
  deleteAlertChannel,
  deleteAlertRule,
  deleteAlertSilence,
  getAlert,
  getAlertChannel,
  getAlertRule,
  LIMITS,
  listAlertChannels,
  listAlertRules,
  listAlertSilences,
  listAlerts,
  resolveAlert,
  testAlerts,
  updateAlertChannel,
  updateAlertRule,
} from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import { minutes } from '../../../kit/time/duration.ts';
import type { AlertViews } from '../domain/alerts/alert-views.ts';
import type { ChannelAdmin } from '../domain/alerts/channel-admin.ts';
import type { RuleAdmin } from '../domain/alerts/rule-admin.ts';
import type { SilenceAdmin } from '../domain/alerts/silence-admin.ts';

export interface AlertRoutesServices {
  alertRules: RuleAdmin;
  alertChannels: ChannelAdmin;
  alertSilences: SilenceAdmin;
  alertViews: AlertViews;
}

const CHANGES_PER_MINUTE = 120;
const TESTS_PER_MINUTE = 20;

type Query = { namespaceId?: string | undefined };
const scoped = (caller: Caller, { namespaceId: asked }: Query) => ({ caller, asked });
const DELETED = { deleted: true as const };

/** @spec docs/alerts.md */
export function alertRoutes(http: Http, services: AlertRoutesServices): void {
  const { alertRules, alertChannels, alertSilences, alertViews } = services;
  const limiter = (name: string) => http.kit.createLimiter(name, { windowMs: minutes(1) });
  const reading = { auth: 'caller', perMinute: LIMITS.webhookListsPerMinute * 10 } as const;
  const changing = {
    auth: 'caller',
    perMinute: { limiter: limiter('alert changes'), limit: CHANGES_PER_MINUTE },
  } as const;
  const testing = {
    auth: 'caller',
    perMinute: { limiter: limiter('alert tests'), limit: TESTS_PER_MINUTE },
  } as const;

  mount(http, listAlerts, reading, ({ caller, query: { namespaceId, ...query } }) =>
    alertViews.list({ caller, asked: namespaceId }, query),
  );
  mount(http, getAlert, reading, ({ caller, params }) => alertViews.get(caller, params.id));
  mount(http, acknowledgeAlert, changing, ({ caller, params }) => alertViews.acknowledge(caller, params.id));
  mount(http, resolveAlert, changing, ({ caller, params }) => alertViews.resolve(caller, params.id));
  mount(http, testAlerts, testing, ({ caller, query, body }) => alertViews.test(scoped(caller, query), body));

  mount(http, listAlertRules, reading, ({ caller, query }) => alertRules.list(scoped(caller, query), query));
  mount(http, getAlertRule, reading, ({ caller, query, params }) =>
    alertRules.get(scoped(caller, query), params.name),
  );
  mount(http, createAlertRule, changing, ({ caller, query, body }) =>
    alertRules.create(scoped(caller, query), body),
  );
  mount(http, updateAlertRule, changing, ({ caller, query, params, body }) =>
    alertRules.update(scoped(caller, query), params.name, body),
  );
  mount(http, deleteAlertRule, changing, async ({ caller, query, params }) => {
    await alertRules.remove(scoped(caller, query), params.name);
    return DELETED;
  });

  mount(http, listAlertChannels, reading, ({ caller, query }) =>
    alertChannels.list(scoped(caller, query), query),
  );
  mount(http, getAlertChannel, reading, ({ caller, query, params }) =>
    alertChannels.get(scoped(caller, query), params.name),
  );
  mount(http, createAlertChannel, changing, ({ caller, query, body, reply }) => {
    reply.header('cache-control', 'no-store');
    return alertChannels.create(scoped(caller, query), body);
  });
  mount(http, updateAlertChannel, changing, ({ caller, query, params, body }) =>
    alertChannels.update(scoped(caller, query), params.name, body),
  );
  mount(http, deleteAlertChannel, changing, async ({ caller, query, params }) => {
    await alertChannels.remove(scoped(caller, query), params.name);
    return DELETED;
  });

  mount(http, listAlertSilences, reading, ({ caller, query }) =>
    alertSilences.list(scoped(caller, query), query),
  );
  mount(http, createAlertSilence, changing, ({ caller, query, body }) =>
    alertSilences.create(scoped(caller, query), body),
  );
  mount(http, deleteAlertSilence, changing, async ({ caller, query, params }) => {
    await alertSilences.remove(scoped(caller, query), params.id);
    return DELETED;
  });
}
