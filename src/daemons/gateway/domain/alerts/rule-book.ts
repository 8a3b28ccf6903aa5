import type {
  AlertChannelSettings,
  AlertRuleSettings,
  PlatformConfig,
  SilenceMatcher,
} from '../../../../contracts/index.ts';
import { CHANNEL_SECRETS } from '../../../../contracts/index.ts';
import type { AlertSettingRecord, AlertStore } from '../../../../store/ports/index.ts';

export interface Rule {
  namespaceId: string;
  name: string;
  settings: AlertRuleSettings;
  declared: boolean;
  createdAt: number | null;
  updatedAt: number | null;
}

export interface Channel {
  namespaceId: string;
  name: string;
  description: string | null;
  settings: AlertChannelSettings;
  declared: boolean;
  /** The sealed secret of a stored channel, or the reference of a declared one. */
  secret: { sealed: string } | { ref: string } | null;
  createdAt: number | null;
  updatedAt: number | null;
}

export interface Silence {
  id: string;
  namespaceId: string;
  matcher: SilenceMatcher;
  comment: string | null;
  createdBy: string;
  createdAt: number;
  until: number;
}

export interface StoredChannel {
  description: string | null;
  settings: AlertChannelSettings;
}

const keyOf = (namespaceId: string, name: string): string => JSON.stringify([namespaceId, name]);

/** Rules, channels and silences of the config and of the store. */
export class RuleBook {
  readonly #store: Pick<AlertStore, 'settings' | 'revision'>;
  readonly #declared: { rules: Rule[]; channels: Channel[] };
  #revision = -1;
  #rules = new Map<string, Rule>();
  #channels = new Map<string, Channel>();
  #silences: Silence[] = [];

  constructor(store: Pick<AlertStore, 'settings' | 'revision'>, config: PlatformConfig['alerts']) {
    this.#store = store;
    this.#declared = { rules: declaredRules(config), channels: declaredChannels(config) };
  }

  /** Revision of the settings, which changes with each change of them. */
  get revision(): number {
    return this.#revision;
  }

  get rules(): Rule[] {
    return [...this.#rules.values()];
  }

  get channels(): Channel[] {
    return [...this.#channels.values()];
  }

  get silences(): readonly Silence[] {
    return this.#silences;
  }

  rule(namespaceId: string, name: string): Rule | undefined {
    return this.#rules.get(keyOf(namespaceId, name));
  }

  channel(namespaceId: string, name: string): Channel | undefined {
    return this.#channels.get(keyOf(namespaceId, name));
  }

  /** Reads the settings again if they have changed. */
  async refresh(): Promise<void> {
    const revision = await this.#store.revision();
    if (revision === this.#revision) return;
    const records = await this.#store.settings();
    const of = (kind: AlertSettingRecord['kind']) => records.filter((record) => record.kind === kind);
    // The config wins, so that a setting of the API cannot replace a declared one.
    this.#rules = indexed([...of('rule').map(ruleOf), ...this.#declared.rules]);
    this.#channels = indexed([...of('channel').map(channelOf), ...this.#declared.channels]);
    this.#silences = of('silence').map(silenceOf);
    this.#revision = revision;
  }
}

function indexed<Setting extends { namespaceId: string; name: string }>(
  settings: readonly Setting[],
): Map<string, Setting> {
  return new Map(settings.map((setting) => [keyOf(setting.namespaceId, setting.name), setting]));
}

function ruleOf({ namespaceId, name, body, createdAt, updatedAt }: AlertSettingRecord): Rule {
  const settings = JSON.parse(body) as AlertRuleSettings;
  return { namespaceId, name, settings, declared: false, createdAt, updatedAt };
}

function channelOf({ namespaceId, name, body, sealed, createdAt, updatedAt }: AlertSettingRecord): Channel {
  const stored = JSON.parse(body) as StoredChannel;
  return {
    ...{ namespaceId, name, ...stored, declared: false, createdAt, updatedAt },
    secret: sealed === null ? null : { sealed },
  };
}

function silenceOf({ namespaceId, name, body, createdAt, updatedAt }: AlertSettingRecord): Silence {
  const stored = JSON.parse(body) as Pick<Silence, 'matcher' | 'comment' | 'createdBy'>;
  return { id: name, namespaceId, ...stored, createdAt, until: updatedAt };
}

function declaredRules({ rules }: PlatformConfig['alerts']): Rule[] {
  return Object.entries(rules).map(([name, { namespace, ...settings }]) => ({
    ...{ namespaceId: namespace, name, settings, declared: true, createdAt: null, updatedAt: null },
  }));
}

function declaredChannels({ channels }: PlatformConfig['alerts']): Channel[] {
  return Object.entries(channels).map(([name, { namespace, description, ...given }]) => {
    const field = CHANNEL_SECRETS[given.type];
    const { [field]: ref, ...settings } = given as Record<string, unknown>;
    return {
      ...{ namespaceId: namespace, name, description, declared: true, createdAt: null, updatedAt: null },
      settings: settings as AlertChannelSettings,
      secret: typeof ref === 'string' ? { ref } : null,
    };
  });
}
