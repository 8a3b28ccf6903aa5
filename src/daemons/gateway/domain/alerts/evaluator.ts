import type { Clock } from '../../../../kit/time/clock.ts';
import { days, hours, minutes } from '../../../../kit/time/duration.ts';
import type { AlertFact, AlertNotificationRecord } from '../../../../store/ports/index.ts';
import { AlertChanges, type AlertChangesDeps } from './alert-changes.ts';
import { type Flush, flushGroup, type GroupState } from './grouping.ts';
import { appliesTo } from './matching.ts';
import type { NotificationBody } from './notification.ts';
import { EVENT_KINDS, type Occurrence, RUN_FACTS, readFact } from './occurrence.ts';
import type { Rule } from './rule-book.ts';
import { alertOf, groupOf, type WorkSet } from './work-set.ts';

/** Reads facts of runs and schedules above a number, or undefined while their service does not answer. */
export type ReadRunFacts = (after: number, limit: number) => Promise<AlertFact[] | undefined>;

export interface EvaluatorDeps extends AlertChangesDeps {
  clock: Clock;
  retentionDays: number;
  /** Undefined if the facts of runs are in the gateway's own store. */
  readRunFacts: ReadRunFacts | undefined;
}

const FACTS_PER_COMMIT = 200;
const MAX_FACT_BATCHES = 20;
const MAX_GROUPS = 200;
const MAX_OPEN = 1100;
const PAGE = 500;
const MAX_PAGES = 20;
/** Time after which an event ends without a message, unless it is reported again. */
const EVENT_ENDS_MS = hours(24);
/** Time without another crash loop after which the service has recovered or was stopped. */
const CRASH_LOOP_ENDS_MS = minutes(10);
const SILENCE_KEPT_MS = days(7);
/** Alerts listed in a notification. Further ones are counted. */
export const MAX_LISTED = 20;

/** Turns facts and conditions into alerts, and due groups into notifications. @spec docs/decisions/0258 */
export class Evaluator {
  readonly #deps: EvaluatorDeps;
  readonly changes: AlertChanges;

  constructor(deps: EvaluatorDeps) {
    this.#deps = deps;
    this.changes = new AlertChanges(deps);
  }

  /** Handles facts of the own store, which are deleted in the transaction that writes their alerts. */
  async handleFacts(): Promise<void> {
    const { store, clock } = this.#deps;
    for (let batch = 0; batch < MAX_FACT_BATCHES; batch++) {
      const facts = await store.facts(FACTS_PER_COMMIT);
      if (facts.length === 0) return;
      await this.changes.run((set) => this.#applyAll(set, facts, 'gateway', clock.now()), {
        facts: facts.map(({ seq }) => seq),
      });
      if (facts.length < FACTS_PER_COMMIT) return;
    }
  }

  /** Handles facts of the workflow service. The position moves in the transaction that writes their alerts. */
  async handleRunFacts(): Promise<void> {
    const { store, clock, readRunFacts } = this.#deps;
    if (!readRunFacts) return;
    for (let batch = 0; batch < MAX_FACT_BATCHES; batch++) {
      const from = await store.cursor(RUN_FACTS);
      const facts = await readRunFacts(from, FACTS_PER_COMMIT);
      if (!facts || facts.length === 0) return;
      const cursor = { name: RUN_FACTS, from, to: facts.at(-1)!.seq };
      await this.changes.run((set) => this.#applyAll(set, facts, RUN_FACTS, clock.now()), { cursor });
      if (facts.length < FACTS_PER_COMMIT) return;
    }
  }

  async #applyAll(set: WorkSet, facts: readonly AlertFact[], source: string, now: number): Promise<void> {
    for (const fact of facts) {
      const found = readFact(fact, source);
      if (found) await this.changes.apply(set, found, now);
    }
  }

  /**
   * Makes the open alerts of a rule those of its condition that the rule matches. `isOwn` limits the change to objects of
   * this node.
   */
  async reconcile(
    rule: Rule,
    found: readonly Occurrence[],
    isOwn?: (objectKey: string) => boolean,
  ): Promise<void> {
    const { store, clock } = this.#deps;
    const { namespaceId, name } = rule;
    const matching = found.filter((occurrence) => appliesTo(rule, occurrence));
    const present = new Set(matching.map(({ object }) => object.id));
    await this.changes.run(async (set) => {
      const now = clock.now();
      const open = (await store.openOf({ namespaceId, rule: name }, MAX_OPEN)).map((row) =>
        set.known(alertOf(row)),
      );
      const known = new Map(open.map((alert) => [alert.objectKey, alert]));
      for (const alert of open)
        if (!present.has(alert.objectKey) && (isOwn?.(alert.objectKey) ?? true))
          await this.changes.resolve(set, alert, { now });
      for (const occurrence of matching) {
        const alert = known.get(occurrence.object.id);
        if (!alert) await this.changes.raise(set, rule, occurrence, now);
      }
    });
  }

  /** Applies changed silences, and ends alerts of rules that were deleted or disabled. */
  async applySettings(hasChanged: boolean): Promise<void> {
    const states = hasChanged ? (['silenced', 'firing'] as const) : (['silenced'] as const);
    for (const state of states) await this.#eachPage(state);
  }

  async #eachPage(state: 'silenced' | 'firing'): Promise<void> {
    const { store, book, clock } = this.#deps;
    let after = '';
    for (let page = 0; page < MAX_PAGES; page++) {
      const rows = await store.inState(state, after, PAGE);
      await this.changes.run(async (set) => {
        const now = clock.now();
        for (const row of rows) {
          const alert = alertOf(row);
          const rule = book.rule(alert.namespaceId, alert.rule);
          if (!rule?.settings.enabled) await this.changes.resolve(set, alert, { now, isQuiet: true });
          else await this.changes.resilence(set, alert, now);
        }
      });
      if (rows.length < PAGE) return;
      after = rows.at(-1)!.id;
    }
  }

  /** Ends old events, and deletes old rows. */
  async prune(): Promise<void> {
    const { store, clock, retentionDays } = this.#deps;
    const now = clock.now();
    const old = await store.openBefore(EVENT_KINDS, now - EVENT_ENDS_MS, PAGE);
    await this.changes.run(async (set) => {
      for (const row of old) await this.changes.resolve(set, alertOf(row), { now, isQuiet: true });
    });
    // A crash loop is reported at least every five minutes while it lasts.
    const recovered = await store.openBefore(['service.crash_loop'], now - CRASH_LOOP_ENDS_MS, PAGE);
    await this.changes.run(async (set) => {
      for (const row of recovered) await this.changes.resolve(set, alertOf(row), { now });
    });
    while ((await store.prune(now - days(retentionDays), PAGE)) >= PAGE);
    await store.pruneSilences(now - SILENCE_KEPT_MS);
  }

  /** Writes the notifications of due groups. They are sent from the store, so that a restart loses none. */
  async flush(): Promise<void> {
    const { store, clock } = this.#deps;
    const groups = await store.dueGroups(clock.now(), MAX_GROUPS);
    for (const group of groups) await this.changes.run((set) => this.#flushOne(set, group.key));
  }

  async #flushOne(set: WorkSet, key: string): Promise<void> {
    const { store, book, clock, random } = this.#deps;
    const now = clock.now();
    const row = await store.group(key);
    if (!row || row.flushAt === null || row.flushAt > now) return;
    const group = set.use(groupOf(row));
    const rule = book.rule(group.namespaceId, group.rule);
    const open = (await store.openIn(key, MAX_OPEN)).map(alertOf);
    const ended = await Promise.all(group.resolved.slice(0, MAX_LISTED).map((id) => store.alert(id)));
    const flush = flushGroup(
      group,
      rule,
      {
        firing: open.filter(({ state }) => state === 'firing'),
        ended: ended.flatMap((found) => (found ? [alertOf(found)] : [])),
        now,
      },
      () => `incident_${random.uuid()}`,
    );
    set.changeGroup(group);
    if (!rule || !flush) return;
    for (const channel of rule.settings.channels)
      set.addNotification(this.#notification(rule, { group, channel, flush, now }));
  }

  #notification(
    rule: Rule,
    { group, channel, flush, now }: { group: GroupState; channel: string; flush: Flush; now: number },
  ): AlertNotificationRecord {
    const { reason, alerts, firing, uncounted, incident } = flush;
    const body: NotificationBody = {
      ...{ reason, rule: rule.name, kind: rule.settings.kind, severity: rule.settings.severity, incident },
      ...{ firing, uncounted, total: alerts.length, alertIds: alerts.map(({ id }) => id) },
      alerts: alerts
        .slice(0, MAX_LISTED)
        .map(({ id, title, message, path, count, firstAt, state, object }) => ({
          ...{ id, title, message, path, count, firstAt, state },
          object: { type: object.type, id: object.id, namespaceId: object.namespaceId },
        })),
      attempts: [],
    };
    return {
      ...{ id: `ntf_${this.#deps.random.uuid()}`, version: 1, namespaceId: rule.namespaceId },
      ...{ groupKey: group.key, channel, status: 'pending', nextAt: now, createdAt: now },
      body: JSON.stringify(body),
    };
  }
}
