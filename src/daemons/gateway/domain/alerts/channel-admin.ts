import {
  type AlertChannel,
  type AlertChannelChange,
  AlertChannelSettings,
  CHANNEL_SECRETS,
  type NewAlertChannel,
} from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import { certificateFault } from '../../../../kit/security/certificates.ts';
import type { Seal } from '../../../../kit/security/keys.ts';
import type { Random } from '../../../../kit/security/random.ts';
import { newWebhookSecret } from '../../../../kit/security/standard-webhooks.ts';
import { sealContext, targetOf } from './channel-calls.ts';
import type { NotificationBody } from './notification.ts';
import type { RuleAdminDeps } from './rule-admin.ts';
import type { Channel, StoredChannel } from './rule-book.ts';
import { declaredError, notFound, requireRoom, type Scoped, settingsPage } from './setting-scope.ts';

export interface ChannelAdminDeps extends RuleAdminDeps {
  seal: Seal;
  random: Random;
}

/** Notifications from which the health of a channel is read. */
const RECENT = 20;

/** Fields that decide who receives the secret of a channel. A change of them needs the secret again. */
const RECEIVER_FIELDS: Readonly<Record<AlertChannelSettings['type'], readonly string[]>> = {
  webhook: [],
  slack: [],
  email: ['host', 'port', 'security', 'ca', 'user'],
  pagerduty: ['url'],
};

/** Channels by the API. Their secrets are sealed and never answered. @spec docs/alerts.md */
export class ChannelAdmin {
  readonly #deps: ChannelAdminDeps;

  constructor(deps: ChannelAdminDeps) {
    this.#deps = deps;
  }

  async list(scoped: Scoped, query: { cursor?: string | undefined; limit: number }) {
    const { book, scope } = this.#deps;
    await book.refresh();
    const page = settingsPage(book.channels, { scope: scope.list(scoped), ...query });
    const pending = await this.#pending();
    return { ...page, items: await Promise.all(page.items.map((channel) => this.#view(channel, pending))) };
  }

  async get(scoped: Scoped, name: string): Promise<AlertChannel> {
    return this.#view(await this.find(scoped, name), await this.#pending());
  }

  async create(scoped: Scoped, { name, description, ...given }: NewAlertChannel) {
    const { store, book, scope, clock, random } = this.#deps;
    const namespaceId = scope.owner(scoped);
    await book.refresh();
    requireRoom(book.channels, 'channel', namespaceId);
    if (book.channel(namespaceId, name)?.declared) throw declaredError('channel', name);
    const { settings, secret } = split(given);
    requireCertificates(settings);
    requirePassword(settings, secret !== undefined);
    const generated = settings.type === 'webhook' && secret === undefined ? newWebhookSecret(random) : null;
    const record = this.#record({ namespaceId, name, description, settings }, secret ?? generated);
    const now = clock.now();
    if (!(await store.putSetting({ ...record, createdAt: now, updatedAt: now }, false)))
      throw new PlatformError('CONFLICT', `The channel "${name}" exists already.`);
    return { ...(await this.get({ ...scoped, asked: namespaceId }, name)), secret: generated };
  }

  async update(
    scoped: Scoped,
    name: string,
    { description, ...given }: AlertChannelChange,
  ): Promise<AlertChannel> {
    const { store, clock } = this.#deps;
    const channel = await this.#changeable(scoped, name);
    const { namespaceId } = channel;
    const { settings, secret } = changed(channel, given);
    requireCertificates(settings);
    requirePassword(settings, secret !== undefined || channel.secret !== null);
    const text = description === undefined ? channel.description : description;
    const record = this.#record({ namespaceId, name, description: text, settings }, secret ?? null);
    const kept = channel.secret !== null && 'sealed' in channel.secret ? channel.secret.sealed : null;
    const now = clock.now();
    const stored = { ...record, sealed: record.sealed ?? kept, createdAt: now, updatedAt: now };
    if (!(await store.putSetting(stored, true))) throw notFound('channel', name);
    return this.get({ ...scoped, asked: namespaceId }, name);
  }

  async remove(scoped: Scoped, name: string): Promise<void> {
    const { store, book } = this.#deps;
    const { namespaceId } = await this.#changeable(scoped, name);
    const user = book.rules.find(
      (rule) => rule.namespaceId === namespaceId && rule.settings.channels.includes(name),
    );
    if (user)
      throw new PlatformError(
        'CONFLICT',
        `The rule "${user.name}" uses the channel "${name}". Change the rule first.`,
      );
    if (!(await store.removeSetting({ kind: 'channel', namespaceId, name }))) throw notFound('channel', name);
  }

  /** Throws NOT_FOUND. */
  async find(scoped: Scoped, name: string): Promise<Channel> {
    const { book, scope } = this.#deps;
    const namespaces = scope.lookup(scoped);
    await book.refresh();
    const found = namespaces.map((namespaceId) => book.channel(namespaceId, name)).find((channel) => channel);
    if (!found) throw notFound('channel', name);
    return found;
  }

  async #changeable(scoped: Scoped, name: string): Promise<Channel> {
    const channel = await this.find(scoped, name);
    if (channel.declared) throw declaredError('channel', name);
    return channel;
  }

  #record(
    { namespaceId, name, ...stored }: StoredChannel & { namespaceId: string; name: string },
    secret: string | null,
  ) {
    const { seal } = this.#deps;
    const sealed = secret === null ? null : seal.seal(secret, sealContext(namespaceId, name));
    return { kind: 'channel' as const, namespaceId, name, body: JSON.stringify(stored), sealed };
  }

  async #pending(): Promise<Map<string, number>> {
    const found = await this.#deps.store.pending();
    return new Map(found.map(({ namespaceId, channel, pending }) => [`${namespaceId}/${channel}`, pending]));
  }

  async #view(channel: Channel, pending: Map<string, number>): Promise<AlertChannel> {
    const { namespaceId, name, description, settings, declared, secret, createdAt, updatedAt } = channel;
    const { type, ...shown } = settings;
    const recent = await this.#deps.store.notificationsTo(namespaceId, name, RECENT);
    const attempts = recent
      .flatMap(({ body }) => (JSON.parse(body) as NotificationBody).attempts)
      .toSorted((a, b) => b.at - a.at);
    const failed = attempts.find(({ ok }) => !ok);
    return {
      ...{ name, namespaceId, type, description, target: targetOf(settings), declared, createdAt, updatedAt },
      settings: type === 'webhook' ? { url: targetOf(settings) } : shown,
      hasSecret: secret !== null,
      failing: attempts[0]?.ok === false,
      lastSuccessAt: attempts.find(({ ok }) => ok)?.at ?? null,
      lastFailureAt: failed?.at ?? null,
      lastError: failed?.error ?? null,
      pending: pending.get(`${namespaceId}/${name}`) ?? 0,
    };
  }
}

type Given =
  | Omit<NewAlertChannel, 'name' | 'description'>
  | (Omit<AlertChannelChange, 'description'> & Pick<AlertChannelSettings, 'type'>);

/** Separates the secret from the settings. Throws VALIDATION_ERROR for fields of another type of channel. */
function split(given: Given): { settings: AlertChannelSettings; secret: string | undefined } {
  const { [CHANNEL_SECRETS[given.type]]: secret, ...rest } = given as Record<string, unknown>;
  const parsed = AlertChannelSettings.safeParse(rest);
  if (parsed.success) return { settings: parsed.data, secret: secret as string | undefined };
  const issues = parsed.error.issues.map(({ path, message }) => ({
    path: ['body', ...path].join('.'),
    message,
  }));
  throw new PlatformError('VALIDATION_ERROR', `A channel of type ${given.type} cannot have these settings.`, {
    details: { issues },
  });
}

function changed({ name, settings, secret: known }: Channel, given: Omit<AlertChannelChange, 'description'>) {
  const fields = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const { settings: next, secret } = split({ ...settings, ...fields } as Given);
  const moved = RECEIVER_FIELDS[settings.type].filter(
    (field) =>
      ((settings as Record<string, unknown>)[field] ?? null) !==
      ((next as Record<string, unknown>)[field] ?? null),
  );
  if (moved.length > 0 && known !== null && secret === undefined) {
    const field = CHANNEL_SECRETS[settings.type];
    throw new PlatformError(
      'VALIDATION_ERROR',
      `A change of ${moved.join(', ')} sends the secret of the channel "${name}" elsewhere. Give ${field} again.`,
      { details: { issues: [{ path: `body.${field}`, message: 'must be given again' }] } },
    );
  }
  return { settings: next, secret };
}

/** Reads the authorities now, because a faulty one would only fail when an alert is sent. */
function requireCertificates(settings: AlertChannelSettings): void {
  const message = settings.type === 'email' && settings.ca ? certificateFault(settings.ca) : undefined;
  if (message === undefined) return;
  throw new PlatformError('VALIDATION_ERROR', 'The certificates of the mail server cannot be read.', {
    details: { issues: [{ path: 'body.ca', message }] },
  });
}

function requirePassword(settings: AlertChannelSettings, hasSecret: boolean): void {
  if (settings.type !== 'email' || settings.user === null || hasSecret) return;
  throw new PlatformError('VALIDATION_ERROR', 'A mail server with a user needs a password.', {
    details: { issues: [{ path: 'body.password', message: 'is missing' }] },
  });
}
