import type {
  CallInput,
  connectSource,
  createSource,
  Destination,
  DestinationSettings,
  Source,
  updateDestination,
  updateSource,
} from '../../../../../contracts/index.ts';
import { MAX_DESTINATIONS, TARGET_KINDS } from '../../../../../contracts/index.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import type { SecretRecord, WebhookInbox } from '../../../../../store/ports/index.ts';
import type { WebhookPauses } from '../../webhooks/admin/pauses.ts';
import type { WebhookSecrets } from '../../webhooks/verify/secrets.ts';
import { settingsOf } from '../destination-settings.ts';
import type { SourceExpressions } from '../source-expressions.ts';
import type { SourceEntry, StoredDestination } from '../source-records.ts';
import type { SourceRegistry } from '../source-registry.ts';
import { catalogueEntry, sourceKey } from '../source-targets.ts';
import { countDeliveriesOf } from './source-counts.ts';
import type { SourceSecrets } from './source-secrets.ts';
import type { SourceViews } from './source-views.ts';

export interface SourceAdminDeps {
  registry: SourceRegistry;
  secrets: Pick<WebhookSecrets, 'list'>;
  sourceSecrets: SourceSecrets;
  pauses: WebhookPauses;
  views: SourceViews;
  expressions: SourceExpressions;
  inbox: Pick<WebhookInbox, 'list'>;
  clock: Clock;
}

type CreateBody = CallInput<typeof createSource>['body'];
type UpdateBody = CallInput<typeof updateSource>['body'];
type ConnectBody = CallInput<typeof connectSource>['body'];
type UpdateDestinationBody = CallInput<typeof updateDestination>['body'];

const MAX_SOURCES = 1000;

/** Creates, changes and deletes sources and their destinations. @spec docs/sources.md */
export class SourceAdmin {
  readonly #deps: SourceAdminDeps;

  constructor(deps: SourceAdminDeps) {
    this.#deps = deps;
  }

  async create(namespaceId: string, { name, secret, ...settings }: CreateBody) {
    const { registry, views, clock } = this.#deps;
    this.#requireEntry(settings.provider);
    if (registry.list(namespaceId).length >= MAX_SOURCES)
      throw new PlatformError('CONFLICT', `The namespace has ${MAX_SOURCES} sources, which is the maximum.`);
    const source = { namespaceId, name, settings: settings as never, createdAt: clock.now() };
    if (registry.find(namespaceId, name) || !(await registry.create(source)))
      throw new PlatformError('CONFLICT', `There is a source ${name} already.`);
    const entry = this.require(namespaceId, name);
    const made = await this.#provisionNew(entry, secret);
    const stored = await this.#secretOf(namespaceId, name);
    return {
      ...views.ofSource(entry, stored),
      url: views.urlOf(entry, made.token),
      secret: made.secret,
    };
  }

  async list(namespaceId: string, { cursor, limit }: { cursor?: string | undefined; limit: number }) {
    const { registry, secrets, views } = this.#deps;
    const after = registry
      .list(namespaceId)
      .filter(({ source }) => cursor === undefined || source.name > cursor);
    const records = new Map((await secrets.list(namespaceId)).map((record) => [keyText(record), record]));
    const items = after
      .slice(0, limit)
      .map((entry) => views.ofSource(entry, records.get(keyText(sourceKey(namespaceId, entry.source.name)))));
    return { items, nextCursor: after.length > limit ? items.at(-1)!.name : null };
  }

  async get(namespaceId: string, name: string) {
    const entry = this.require(namespaceId, name);
    const { byDestination, counted } = await countDeliveriesOf(this.#deps.inbox, namespaceId, name);
    const secret = await this.#secretOf(namespaceId, name);
    return { ...this.#deps.views.ofSource(entry, secret, byDestination), counted };
  }

  async update(namespaceId: string, name: string, change: UpdateBody): Promise<Source> {
    const { source } = this.#requireStored(namespaceId, name);
    this.#requireEntry(change.provider);
    const { provider, auth, ...kept } = source.settings;
    const sender = change.provider || change.auth ? {} : { provider, auth };
    const settings = JSON.parse(JSON.stringify({ ...kept, ...sender, ...change }));
    await this.#deps.registry.update({ ...source, settings });
    return this.#deps.views.ofSource(
      this.require(namespaceId, name),
      await this.#secretOf(namespaceId, name),
    );
  }

  /** Deletes the source first, so that no delivery is accepted without a secret. */
  async remove(namespaceId: string, name: string): Promise<void> {
    const { registry, sourceSecrets } = this.#deps;
    const { destinations } = this.#requireStored(namespaceId, name);
    await registry.remove(namespaceId, name);
    await sourceSecrets.revoke(namespaceId, name);
    for (const destination of ['', ...destinations.keys()])
      await this.#resumeIfPaused(namespaceId, name, destination);
  }

  async rotate(namespaceId: string, name: string, given: string | undefined) {
    const { sourceSecrets, views } = this.#deps;
    const entry = this.require(namespaceId, name);
    const made = await sourceSecrets.provision(entry, given);
    if (made.secret === '' && made.token === undefined && given === undefined)
      throw new PlatformError(
        'VALIDATION_ERROR',
        `${entry.source.settings.provider} makes the secret itself: send it as "secret" (svc: --secret-stdin).`,
      );
    return { url: views.urlOf(entry, made.token), secret: made.secret };
  }

  /** Accepts one secret that the sender hands over within `forMs`. */
  async expectSecret(namespaceId: string, name: string, forMs: number) {
    const { sourceSecrets, views } = this.#deps;
    const entry = this.require(namespaceId, name);
    const expiresAt = await sourceSecrets.expect(entry, forMs);
    return { url: views.urlOf(entry, undefined), expiresAt };
  }

  async connect(
    namespaceId: string,
    name: string,
    { name: given, ...body }: ConnectBody,
    { mayBePrivate }: { mayBePrivate: boolean },
  ): Promise<Destination> {
    const { registry, views, clock } = this.#deps;
    const { destinations } = this.#requireStored(namespaceId, name);
    const settings = settingsOf(body as never);
    const destination: StoredDestination = {
      name: given ?? freeName(settings, destinations),
      settings,
      mayBePrivate,
      createdAt: clock.now(),
    };
    await this.#checkExpressions(settings);
    if (destinations.size >= MAX_DESTINATIONS)
      throw new PlatformError(
        'CONFLICT',
        `The source has ${MAX_DESTINATIONS} destinations, which is the maximum.`,
      );
    if (!(await registry.connect(namespaceId, name, destination)))
      throw new PlatformError('CONFLICT', `${name} has a destination ${destination.name} already.`);
    return views.ofDestination(this.require(namespaceId, name), destination);
  }

  /** Changes a destination. A new target replaces the old one, whatever its kind. */
  async updateDestination(
    namespaceId: string,
    name: string,
    destination: string,
    change: UpdateDestinationBody,
    { mayBePrivate }: { mayBePrivate: boolean },
  ): Promise<Destination> {
    const { registry, views } = this.#deps;
    const before = this.#requireDestination(this.#requireStored(namespaceId, name), destination);
    const kept = { ...before.settings };
    const hasTarget = TARGET_KINDS.some((kind) => change[kind] !== undefined);
    if (hasTarget) for (const kind of TARGET_KINDS) delete kept[kind];
    const settings = { ...kept, ...change } as DestinationSettings;
    await this.#checkExpressions(settings);
    const after = { ...before, settings, mayBePrivate: hasTarget ? mayBePrivate : before.mayBePrivate };
    await registry.updateDestination(namespaceId, name, after);
    return views.ofDestination(this.require(namespaceId, name), after);
  }

  async disconnect(namespaceId: string, name: string, destination: string): Promise<void> {
    this.#requireDestination(this.#requireStored(namespaceId, name), destination);
    await this.#deps.registry.disconnect(namespaceId, name, destination);
    await this.#resumeIfPaused(namespaceId, name, destination);
  }

  async pause(namespaceId: string, name: string, destination: string | undefined): Promise<void> {
    await this.#deps.pauses.pause(this.#pauseKey(namespaceId, name, destination));
  }

  async resume(namespaceId: string, name: string, destination: string | undefined): Promise<void> {
    await this.#deps.pauses.resume(this.#pauseKey(namespaceId, name, destination));
  }

  /** Returns a source. Throws NOT_FOUND if the namespace has none of this name. */
  require(namespaceId: string, name: string): SourceEntry {
    const entry = this.#deps.registry.find(namespaceId, name);
    if (entry) return entry;
    throw new PlatformError('NOT_FOUND', `There is no source ${name}; list them with \`svc sources list\`.`);
  }

  #requireStored(namespaceId: string, name: string): SourceEntry {
    const entry = this.require(namespaceId, name);
    if (!entry.isDeclared) return entry;
    throw new PlatformError(
      'CONFLICT',
      `svc.config.json declares the source ${name}: change sources.declared there, and restart.`,
    );
  }

  #requireDestination({ source, destinations }: SourceEntry, destination: string): StoredDestination {
    const found = destinations.get(destination);
    if (found) return found;
    const known = [...destinations.keys()];
    throw new PlatformError('NOT_FOUND', `The source ${source.name} has no destination ${destination}.`, {
      details: { destinations: known },
    });
  }

  #requireEntry(provider: string | undefined): void {
    if (provider === undefined || catalogueEntry(provider)) return;
    throw new PlatformError('VALIDATION_ERROR', `The catalogue has no entry for ${provider}.`, {
      details: { issues: [{ path: 'body.provider', message: 'is not in the catalogue' }] },
    });
  }

  /** Provisions a new source. A source without a valid secret is not kept. */
  async #provisionNew(entry: SourceEntry, secret: string | undefined) {
    try {
      return await this.#deps.sourceSecrets.provision(entry, secret);
    } catch (error) {
      await this.#deps.registry.remove(entry.source.namespaceId, entry.source.name);
      throw error;
    }
  }

  async #checkExpressions({ filter, transform }: DestinationSettings): Promise<void> {
    const { expressions } = this.#deps;
    if (filter !== null) await expressions.check('filter', filter);
    if (transform !== null) await expressions.check('transform', transform);
  }

  async #secretOf(namespaceId: string, name: string): Promise<SecretRecord | undefined> {
    const wanted = keyText(sourceKey(namespaceId, name));
    return (await this.#deps.secrets.list(namespaceId)).find((record) => keyText(record) === wanted);
  }

  #pauseKey(namespaceId: string, name: string, destination: string | undefined) {
    const entry = this.require(namespaceId, name);
    if (destination !== undefined) this.#requireDestination(entry, destination);
    return sourceKey(namespaceId, name, destination);
  }

  async #resumeIfPaused(namespaceId: string, name: string, destination: string): Promise<void> {
    const key = sourceKey(namespaceId, name, destination);
    if (this.#deps.pauses.isPaused(key)) await this.#deps.pauses.resume(key);
  }
}

const keyText = ({ pluginId, event, instanceId }: ReturnType<typeof sourceKey>): string =>
  JSON.stringify([pluginId, event, instanceId]);

/** Returns a name after the kind of the target, such as `forward` or `forward-2`. */
function freeName(settings: DestinationSettings, taken: ReadonlyMap<string, unknown>): string {
  const kind = TARGET_KINDS.find((each) => settings[each] !== undefined)!;
  for (let number = 1; ; number++) {
    const name = number === 1 ? kind : `${kind}-${number}`;
    if (!taken.has(name)) return name;
  }
}
