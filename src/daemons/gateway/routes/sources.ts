import {
  type Caller,
  connectSource,
  createSource,
  deleteSource,
  disconnectSource,
  expectSourceSecret,
  getSource,
  LIMITS,
  listSources,
  pauseSource,
  replaySource,
  resumeSource,
  rotateSource,
  type SourceSettings,
  updateDestination,
  updateSource,
} from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import { minutes } from '../../../kit/time/duration.ts';
import type { Admins } from '../domain/identity/admins.ts';
import type { SourceAdmin } from '../domain/sources/admin/source-admin.ts';
import type { SourceReplays } from '../domain/sources/admin/source-replays.ts';

export interface SourceRoutesServices {
  sourceAdmin: SourceAdmin;
  sourceReplays: SourceReplays;
  admins: Admins;
}

const CHANGES_PER_MINUTE = 120;

/** @spec docs/sources.md */
export function sourceRoutes(http: Http, services: SourceRoutesServices): void {
  const { sourceAdmin, sourceReplays, admins } = services;
  const reading = { auth: 'caller', perMinute: LIMITS.webhookListsPerMinute * 10 } as const;
  const changing = {
    auth: 'caller',
    perMinute: {
      limiter: http.kit.createLimiter('source changes', { windowMs: minutes(1) }),
      limit: CHANGES_PER_MINUTE,
    },
  } as const;

  /** Only operators may run commands of plugins, so only they may let deliveries run them. */
  function rightsOf(
    caller: Caller,
    { command }: { command?: string | undefined },
  ): { mayBePrivate: boolean } {
    if (command !== undefined) admins.require(caller);
    return { mayBePrivate: admins.is(caller) };
  }

  /** The gateway fetches keys from its own network, so only operators may choose the URL. */
  function requireRightToFetch(caller: Caller, auth: SourceSettings['auth']): void {
    if (auth?.type === 'jwt' && 'jwksUrl' in auth) admins.require(caller);
  }

  mount(http, createSource, changing, ({ caller, body, reply }) => {
    requireRightToFetch(caller, body.auth);
    reply.header('cache-control', 'no-store');
    return sourceAdmin.create(caller.namespaceId, body);
  });
  mount(http, listSources, reading, ({ caller, query }) => sourceAdmin.list(caller.namespaceId, query));
  mount(http, getSource, reading, ({ caller, params }) => sourceAdmin.get(caller.namespaceId, params.name));
  mount(http, updateSource, changing, ({ caller, params, body }) => {
    requireRightToFetch(caller, body.auth);
    return sourceAdmin.update(caller.namespaceId, params.name, body);
  });
  mount(http, deleteSource, changing, async ({ caller, params }) => {
    await sourceAdmin.remove(caller.namespaceId, params.name);
    return { deleted: true as const };
  });
  mount(http, rotateSource, changing, ({ caller, params, body, reply }) => {
    reply.header('cache-control', 'no-store');
    return sourceAdmin.rotate(caller.namespaceId, params.name, body.secret);
  });
  mount(http, expectSourceSecret, changing, ({ caller, params, body }) =>
    sourceAdmin.expectSecret(caller.namespaceId, params.name, minutes(body.minutes)),
  );
  mount(http, connectSource, changing, ({ caller, params, body }) =>
    sourceAdmin.connect(caller.namespaceId, params.name, body, rightsOf(caller, body)),
  );
  mount(http, updateDestination, changing, ({ caller, params: { name, destination }, body }) =>
    sourceAdmin.updateDestination(caller.namespaceId, name, destination, body, rightsOf(caller, body)),
  );
  mount(http, disconnectSource, changing, async ({ caller, params: { name, destination } }) => {
    await sourceAdmin.disconnect(caller.namespaceId, name, destination);
    return { deleted: true as const };
  });
  mount(http, pauseSource, changing, async ({ caller, params, body }) => {
    await sourceAdmin.pause(caller.namespaceId, params.name, body.destination);
    return { paused: true as const };
  });
  mount(http, resumeSource, changing, async ({ caller, params, body }) => {
    await sourceAdmin.resume(caller.namespaceId, params.name, body.destination);
    return { paused: false as const };
  });
  mount(http, replaySource, changing, ({ caller, params, body, request }) => {
    const { id: requestId, traceId } = request;
    return sourceReplays.replay(caller.namespaceId, params.name, body, { requestId, traceId });
  });
}
