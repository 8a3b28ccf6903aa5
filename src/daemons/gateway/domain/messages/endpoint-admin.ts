import type { z } from 'zod';
import {
  type createEndpoint,
  LIMITS,
  MAX_RECENT_ATTEMPTS,
  type OutgoingEndpoint,
  type updateEndpoint,
} from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Seal } from '../../../../kit/security/keys.ts';
import type { Random } from '../../../../kit/security/random.ts';
import { newWebhookSecret } from '../../../../kit/security/standard-webhooks.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type {
  EndpointChanges,
  MessageStore,
  OutgoingEndpointStore,
  StoredEndpoint,
} from '../../../../store/ports/index.ts';
import type { MessageClient } from '../../../outgoing/message-client.ts';
import { pageOf } from '../page.ts';
import { type EndpointRegistry, endpointContext } from './endpoint-registry.ts';
import { endpointView } from './endpoint-views.ts';
import type { SortableIds } from './sortable-ids.ts';

/** The endpoints that a caller may see: those of its namespace, or only those of one application. */
export interface EndpointScope {
  namespaceId: string;
  application?: string | undefined;
}

export type NewEndpoint = z.output<NonNullable<typeof createEndpoint.body>>;
export type EndpointUpdate = z.output<NonNullable<typeof updateEndpoint.body>>;

export interface EndpointAdminDeps {
  store: OutgoingEndpointStore;
  messages: Pick<MessageStore, 'recentAttempts'>;
  registry: EndpointRegistry;
  client: Pick<MessageClient, 'requireAllowed'>;
  ids: SortableIds;
  seal: Seal;
  random: Random;
  clock: Clock;
}

/** Creates, shows and changes endpoints. @spec docs/messages.md */
export class EndpointAdmin {
  readonly #deps: EndpointAdminDeps;

  constructor(deps: EndpointAdminDeps) {
    this.#deps = deps;
  }

  /** Throws QUOTA_EXCEEDED, and PERMISSION_DENIED for a URL that the address rules refuse. */
  async create(scope: EndpointScope, body: NewEndpoint): Promise<OutgoingEndpoint & { secret: string }> {
    const { store, registry, client, ids, seal, random, clock } = this.#deps;
    const { namespaceId } = scope;
    const publicOnly = isPortal(scope);
    client.requireAllowed(new URL(body.url), publicOnly);
    const id = ids.next('ep');
    const now = clock.now();
    const secret = body.secret ?? newWebhookSecret(random);
    const isDisabled = body.disabled === true;
    const endpoint: StoredEndpoint = {
      ...{ id, namespaceId, application: scope.application ?? body.application ?? null },
      ...{ url: body.url, publicOnly, types: body.types, description: body.description ?? null },
      rateLimitPerSecond: body.rateLimitPerSecond ?? null,
      headers: this.#sealHeaders(id, body.headers ?? {}),
      secret: seal.seal(secret, endpointContext(id, 'secret')),
      ...{ previousSecret: null, previousSecretExpiresAt: null, ordered: body.ordered ?? false },
      ...{ retrySchedule: body.retrySchedule ?? null, timeoutMs: body.timeoutMs ?? null },
      ...{ disabledReason: isDisabled ? 'operator' : null, disabledAt: isDisabled ? now : null },
      ...{ failingSince: null, createdAt: now, updatedAt: now },
    };
    if (!(await store.add(endpoint, LIMITS.endpointsPerNamespace)))
      throw new PlatformError(
        'QUOTA_EXCEEDED',
        `The namespace has ${LIMITS.endpointsPerNamespace} endpoints, which is the limit. Delete endpoints that are not used.`,
      );
    await registry.changed(id);
    return { ...(await this.#view(endpoint)), secret };
  }

  async list(
    { namespaceId, application }: EndpointScope,
    query: {
      application?: string | undefined;
      disabled?: 'true' | 'false' | undefined;
      cursor?: string | undefined;
      limit: number;
    },
  ) {
    const rows = await this.#deps.store.list({
      ...{ namespaceId, application: application ?? query.application, before: query.cursor },
      disabled: query.disabled === undefined ? undefined : query.disabled === 'true',
      limit: query.limit + 1,
    });
    const { items, nextCursor } = pageOf(
      rows,
      query.limit,
      ({ id }) => id,
      (row) => row,
    );
    return { items: await this.#views(items), nextCursor };
  }

  async get(scope: EndpointScope, id: string): Promise<OutgoingEndpoint> {
    return this.#view(await this.require(scope, id));
  }

  /** Enabling an endpoint starts its count of failures anew. */
  async update(scope: EndpointScope, id: string, body: EndpointUpdate): Promise<OutgoingEndpoint> {
    const { store, registry, client } = this.#deps;
    const endpoint = await this.require(scope, id);
    if (body.url !== undefined) client.requireAllowed(new URL(body.url), isPortal(scope));
    const changed = await store.update(scope.namespaceId, id, this.#changes(scope, endpoint, body));
    if (!changed) throw unknownEndpoint(id);
    await registry.changed(id);
    return this.#view(changed);
  }

  async remove(scope: EndpointScope, id: string): Promise<void> {
    const { store, registry } = this.#deps;
    await this.require(scope, id);
    if (!(await store.remove(scope.namespaceId, id))) throw unknownEndpoint(id);
    await registry.changed(id);
  }

  async rotate(
    scope: EndpointScope,
    id: string,
    given: string | undefined,
  ): Promise<{ secret: string; previousExpiresAt: number }> {
    const { store, registry, seal, random, clock } = this.#deps;
    await this.require(scope, id);
    const secret = given ?? newWebhookSecret(random);
    const now = clock.now();
    const previousExpiresAt = now + LIMITS.secretGraceMs;
    const sealed = seal.seal(secret, endpointContext(id, 'secret'));
    if (!(await store.rotate(scope.namespaceId, id, { secret: sealed, previousExpiresAt, now })))
      throw unknownEndpoint(id);
    await registry.changed(id);
    return { secret, previousExpiresAt };
  }

  /** Throws NOT_FOUND, also for endpoints outside the scope. */
  async require({ namespaceId, application }: EndpointScope, id: string): Promise<StoredEndpoint> {
    const endpoint = await this.#deps.store.find(namespaceId, id);
    if (!endpoint || (application !== undefined && endpoint.application !== application))
      throw unknownEndpoint(id);
    return endpoint;
  }

  async #view(endpoint: StoredEndpoint): Promise<OutgoingEndpoint> {
    return (await this.#views([endpoint]))[0]!;
  }

  async #views(endpoints: readonly StoredEndpoint[]): Promise<OutgoingEndpoint[]> {
    const { messages, seal, clock } = this.#deps;
    const ids = endpoints.map(({ id }) => id);
    const recent = await messages.recentAttempts(ids, MAX_RECENT_ATTEMPTS);
    const byId = new Map(recent.map((each) => [each.endpointId, each]));
    const now = clock.now();
    return endpoints.map((endpoint) => endpointView(endpoint, { seal, now, recent: byId.get(endpoint.id) }));
  }

  #changes(scope: EndpointScope, endpoint: StoredEndpoint, body: EndpointUpdate): EndpointChanges {
    const { disabled, headers, application, url, ...settings } = body;
    const now = this.#deps.clock.now();
    const isDisabled = endpoint.disabledReason !== null;
    const given = Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
    return {
      ...(given as EndpointChanges),
      // An unchanged URL keeps `publicOnly`: an operator who repeats the URL of a portal user does not approve it.
      // A concurrent update can change both fields, so they are written together.
      ...(url === undefined || url === endpoint.url ? {} : { url, publicOnly: isPortal(scope) }),
      ...(headers === undefined ? {} : { headers: this.#sealHeaders(endpoint.id, headers) }),
      ...(application === undefined || scope.application !== undefined ? {} : { application }),
      ...(disabled === true && !isDisabled ? { disabledReason: 'operator' as const, disabledAt: now } : {}),
      ...(disabled === false && isDisabled
        ? { disabledReason: null, disabledAt: null, failingSince: null }
        : {}),
      updatedAt: now,
    };
  }

  #sealHeaders(id: string, headers: Record<string, string>): string | null {
    if (Object.keys(headers).length === 0) return null;
    return this.#deps.seal.seal(JSON.stringify(headers), endpointContext(id, 'headers'));
  }
}

/** Users of a portal are outsiders: their URLs never lead to private addresses, whatever the config allows. */
const isPortal = (scope: EndpointScope): boolean => scope.application !== undefined;

export function unknownEndpoint(id: string): PlatformError {
  return new PlatformError('NOT_FOUND', `There is no endpoint "${id}".`);
}
