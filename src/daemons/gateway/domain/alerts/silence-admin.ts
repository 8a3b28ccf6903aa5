import type { AlertSilence, SilenceMatcher } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Random } from '../../../../kit/security/random.ts';
import type { RuleAdminDeps } from './rule-admin.ts';
import type { Silence } from './rule-book.ts';
import { notFound, requireRoom, type Scoped, settingsPage } from './setting-scope.ts';

export interface SilenceAdminDeps extends RuleAdminDeps {
  random: Random;
}

/** Silences. Alerts that match one are recorded, but not sent until it ends. */
export class SilenceAdmin {
  readonly #deps: SilenceAdminDeps;

  constructor(deps: SilenceAdminDeps) {
    this.#deps = deps;
  }

  async list(scoped: Scoped, query: { cursor?: string | undefined; limit: number }) {
    const { book, scope } = this.#deps;
    await book.refresh();
    const named = book.silences.map((silence) => ({ ...silence, name: silence.id }));
    const page = settingsPage(named, { scope: scope.list(scoped), ...query });
    return { ...page, items: page.items.map((silence) => this.#view(silence)) };
  }

  async create(
    scoped: Scoped,
    {
      matcher,
      until,
      comment = null,
    }: { matcher: SilenceMatcher; until: number; comment?: string | null | undefined },
  ): Promise<AlertSilence> {
    const { store, book, scope, clock, random } = this.#deps;
    const namespaceId = scope.owner(scoped);
    await book.refresh();
    const createdAt = clock.now();
    if (until <= createdAt) throw new PlatformError('VALIDATION_ERROR', 'A silence must end in the future.');
    requireRoom(
      book.silences.map((silence) => ({ ...silence, name: silence.id })),
      'silence',
      namespaceId,
    );
    const id = `sil_${random.uuid()}`;
    const createdBy = scoped.caller.hostId;
    const record = {
      kind: 'silence' as const,
      namespaceId,
      name: id,
      sealed: null,
      createdAt,
      updatedAt: until,
    };
    await store.putSetting({ ...record, body: JSON.stringify({ matcher, comment, createdBy }) }, false);
    return this.#view({ id, namespaceId, matcher, comment, createdBy, createdAt, until });
  }

  async remove(scoped: Scoped, id: string): Promise<void> {
    const { store, scope } = this.#deps;
    for (const namespaceId of scope.lookup(scoped))
      if (await store.removeSetting({ kind: 'silence', namespaceId, name: id })) return;
    throw notFound('silence', id);
  }

  #view(silence: Silence): AlertSilence {
    const { id, namespaceId, matcher, comment, createdBy, createdAt, until } = silence;
    const active = until > this.#deps.clock.now();
    return { id, namespaceId, matcher, comment, createdBy, createdAt, until, active };
  }
}
