import {
  ALL_NAMESPACES,
  type AlertRule,
  type AlertRuleChange,
  type AlertRuleSettings,
  PLATFORM_ALERT_KINDS,
  ruleFaults,
} from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { AlertStore } from '../../../../store/ports/index.ts';
import type { Rule, RuleBook } from './rule-book.ts';
import {
  declaredError,
  notFound,
  requireRoom,
  type Scoped,
  type SettingScope,
  settingsPage,
} from './setting-scope.ts';

export interface RuleAdminDeps {
  store: AlertStore;
  book: RuleBook;
  scope: SettingScope;
  clock: Clock;
}

/** Rules by the API. @spec docs/alerts.md */
export class RuleAdmin {
  readonly #deps: RuleAdminDeps;

  constructor(deps: RuleAdminDeps) {
    this.#deps = deps;
  }

  async list(scoped: Scoped, query: { cursor?: string | undefined; limit: number }) {
    const { book, scope } = this.#deps;
    await book.refresh();
    const page = settingsPage(book.rules, { scope: scope.list(scoped), ...query });
    const firing = await this.#firing();
    return { ...page, items: page.items.map((rule) => this.#view(rule, firing)) };
  }

  async get(scoped: Scoped, name: string): Promise<AlertRule> {
    return this.#view(await this.find(scoped, name), await this.#firing());
  }

  async create(
    scoped: Scoped,
    { name, ...settings }: AlertRuleSettings & { name: string },
  ): Promise<AlertRule> {
    const { store, book, scope, clock } = this.#deps;
    const namespaceId = scope.ownerOfNew(scoped, PLATFORM_ALERT_KINDS.includes(settings.kind));
    await book.refresh();
    requireRoom(book.rules, 'rule', namespaceId);
    if (book.rule(namespaceId, name)?.declared) throw declaredError('rule', name);
    this.#requireChannels(namespaceId, settings);
    const now = clock.now();
    const record = { kind: 'rule' as const, namespaceId, name, body: JSON.stringify(settings), sealed: null };
    if (!(await store.putSetting({ ...record, createdAt: now, updatedAt: now }, false)))
      throw new PlatformError('CONFLICT', `The rule "${name}" exists already.`);
    return this.get({ ...scoped, asked: namespaceId }, name);
  }

  async update(scoped: Scoped, name: string, change: AlertRuleChange): Promise<AlertRule> {
    const { store, clock } = this.#deps;
    const rule = await this.#changeable(scoped, name);
    const given = Object.entries(change).filter(([, value]) => value !== undefined);
    const settings = { ...rule.settings, ...Object.fromEntries(given) } as AlertRuleSettings;
    const faults = ruleFaults(settings);
    if (faults.length > 0)
      throw new PlatformError('VALIDATION_ERROR', `The rule is invalid: ${faults.join('; ')}.`);
    const { namespaceId } = rule;
    if (change.channels) this.#requireChannels(namespaceId, settings);
    const record = { kind: 'rule' as const, namespaceId, name, body: JSON.stringify(settings), sealed: null };
    const now = clock.now();
    if (!(await store.putSetting({ ...record, createdAt: now, updatedAt: now }, true)))
      throw notFound('rule', name);
    return this.get({ ...scoped, asked: namespaceId }, name);
  }

  async remove(scoped: Scoped, name: string): Promise<void> {
    const { namespaceId } = await this.#changeable(scoped, name);
    if (!(await this.#deps.store.removeSetting({ kind: 'rule', namespaceId, name })))
      throw notFound('rule', name);
  }

  /** Throws NOT_FOUND. */
  async find(scoped: Scoped, name: string): Promise<Rule> {
    const { book, scope } = this.#deps;
    const namespaces = scope.lookup(scoped);
    await book.refresh();
    const found = namespaces.map((namespaceId) => book.rule(namespaceId, name)).find((rule) => rule);
    if (!found) throw notFound('rule', name);
    return found;
  }

  async #changeable(scoped: Scoped, name: string): Promise<Rule> {
    const rule = await this.find(scoped, name);
    if (rule.declared) throw declaredError('rule', name);
    return rule;
  }

  #requireChannels(namespaceId: string, settings: AlertRuleSettings): void {
    const [missing] = this.#missing(namespaceId, settings);
    if (missing === undefined) return;
    throw new PlatformError(
      'NOT_FOUND',
      namespaceId === ALL_NAMESPACES
        ? `There is no channel "${missing}" for all namespaces. Add it: svc alerts add-channel ${missing} … --all`
        : `There is no channel "${missing}" in the namespace ${namespaceId}, and its rules use no others. Add it: svc alerts add-channel ${missing} …`,
    );
  }

  #missing(namespaceId: string, { channels }: AlertRuleSettings): string[] {
    return channels.filter((name) => !this.#deps.book.channel(namespaceId, name));
  }

  async #firing(): Promise<Map<string, number>> {
    const found = await this.#deps.store.firing();
    return new Map(found.map(({ namespaceId, rule, alerts }) => [`${namespaceId}/${rule}`, alerts]));
  }

  #view(
    { namespaceId, name, settings, declared, createdAt, updatedAt }: Rule,
    firing: Map<string, number>,
  ): AlertRule {
    const missing = this.#missing(namespaceId, settings);
    return {
      ...{ name, namespaceId, ...settings, declared, createdAt, updatedAt },
      firing: firing.get(`${namespaceId}/${name}`) ?? 0,
      faults: missing.map((channel) => `There is no channel "${channel}".`),
    };
  }
}
