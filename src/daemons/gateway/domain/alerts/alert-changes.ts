import type { Random } from '../../../../kit/security/random.ts';
import type { AlertCommit, AlertStore } from '../../../../store/ports/index.ts';
import {
  type AlertState,
  fire,
  hasCounted,
  openAlert,
  repeatAlert,
  resolveAlert,
  silence,
} from './grouping.ts';
import { appliesTo, groupKeyOf, silenceOf } from './matching.ts';
import { type Ending, isEnding, type Occurrence } from './occurrence.ts';
import type { Rule, RuleBook } from './rule-book.ts';
import { WorkSet } from './work-set.ts';

export interface AlertChangesDeps {
  store: AlertStore;
  book: RuleBook;
  random: Random;
}

const MAX_TRIES = 8;

/** Applies occurrences and endings to alerts and groups. */
export class AlertChanges {
  readonly #deps: AlertChangesDeps;

  constructor(deps: AlertChangesDeps) {
    this.#deps = deps;
  }

  /** Runs `work` until its rows are committed. Returns false if the facts or the cursor were handled elsewhere. */
  async run(
    work: (set: WorkSet) => Promise<void>,
    extra: Pick<AlertCommit, 'facts' | 'cursor'> = {},
  ): Promise<boolean> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const set = new WorkSet(this.#deps.store);
      await work(set);
      if (await set.commit(extra)) return true;
    }
    return false;
  }

  async apply(set: WorkSet, found: Occurrence | Ending, now: number): Promise<void> {
    for (const rule of this.#deps.book.rules) {
      if (isEnding(found)) await this.#end(set, rule, found, now);
      else if (appliesTo(rule, found)) await this.raise(set, rule, found, now);
    }
  }

  async raise(set: WorkSet, rule: Rule, occurrence: Occurrence, now: number): Promise<void> {
    for (const id of [occurrence.object.id, ...occurrence.origins]) {
      const newest = await set.newestOf(rule, id);
      if (hasCounted(newest, occurrence.fact)) return;
      if (!newest || newest.state === 'resolved') continue;
      repeatAlert(newest, occurrence, now);
      set.changeAlert(newest);
      return;
    }
    const group = await set.groupFor(groupKeyOf(rule, occurrence), rule);
    const { namespaceId, name } = rule;
    const matched = { kind: occurrence.kind, object: occurrence.object, namespaceId, rule: name };
    const silenceId = silenceOf(this.#deps.book.silences, matched, now)?.id ?? null;
    const newId = () => `alert_${this.#deps.random.uuid()}`;
    const alert = openAlert({ rule, group, occurrence, silenceId, now, newId });
    set.changeGroup(group);
    if (alert) set.changeAlert(set.known(alert));
  }

  /** Ends an alert and updates its group. */
  async resolve(
    set: WorkSet,
    found: AlertState,
    { now, isQuiet = false }: { now: number; isQuiet?: boolean },
  ): Promise<void> {
    const alert = set.known(found);
    if (alert.state === 'resolved') return;
    const group = await set.group(alert.groupKey);
    const rule = this.#deps.book.rule(alert.namespaceId, alert.rule);
    resolveAlert(alert, group, { rule, now, isQuiet });
    set.changeAlert(alert);
    set.changeGroup(group);
  }

  /** Applies the silences in force to an open alert. */
  async resilence(set: WorkSet, found: AlertState, now: number): Promise<void> {
    const alert = set.known(found);
    const rule = this.#deps.book.rule(alert.namespaceId, alert.rule);
    if (alert.state === 'resolved' || !rule) return;
    const by = silenceOf(this.#deps.book.silences, alert, now);
    if ((by === undefined) === (alert.state === 'firing')) return;
    const group = await set.groupFor(alert.groupKey, rule);
    if (by) silence(alert, group, by.id);
    else fire(alert, group, rule, now);
    set.changeAlert(alert);
    set.changeGroup(group);
  }

  async #end(set: WorkSet, rule: Rule, { kind, objectIds, fact }: Ending, now: number): Promise<void> {
    if (rule.settings.kind !== kind) return;
    for (const id of objectIds) {
      const newest = await set.newestOf(rule, id);
      if (!newest || newest.state === 'resolved' || hasCounted(newest, fact)) continue;
      newest.fact = fact;
      await this.resolve(set, newest, { now });
    }
  }
}
