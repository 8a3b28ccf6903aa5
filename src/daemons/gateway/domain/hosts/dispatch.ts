import { isDeepStrictEqual } from 'node:util';
import type { CommandResult, DispatchRequest, ManifestV3, Permissions } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors.ts';
import { declaredPermissions, type RunOptions, requireDeclaredHost } from '../../../../plugins/index.ts';
import type { PluginRuntime } from '../../../plugin-runtime/runtime.ts';
import type { ExecutionClaims } from './execution-claims.ts';

/** On whose behalf an execution is dispatched: a daemon for any tenant, a container for its own. */
export interface Dispatcher {
  /** The namespace it may act for; null: any. */
  namespaceId: string | null;
  /** Whether the caller is a service that records events, metrics and spans of its executions itself. */
  records: boolean;
}

export interface DispatchDeps {
  plugins: PluginRuntime;
  claims: ExecutionClaims;
}

/** With the ids that were made for what the caller left out. */
export type NamedRequest = DispatchRequest &
  Record<'executionId' | 'requestId' | 'traceId' | 'spanId', string>;

export interface Dispatch {
  /** Throws CONFLICT for an execution that is running already, and what running it throws. */
  run(
    request: NamedRequest,
    by: Dispatcher,
    options: Pick<RunOptions, 'signal' | 'stream' | 'onBegun'>,
  ): Promise<CommandResult>;
}

/**
 * Runs what another daemon, or a container, asks for. What is sent says which declared handler to run and with what;
 * where the plugin lies, what it is configured with and what it may do stand in the registry. @spec Internal dispatch
 */
export function createDispatch({ plugins, claims }: DispatchDeps): Dispatch {
  return {
    async run(request, by, options) {
      const {
        executionId,
        requestId,
        traceId,
        spanId,
        plugin: { id },
        handler,
        timeoutMs,
        target,
      } = request;
      const tenantId = namespaceOf(request, by);
      const plugin = plugins.registry.require(id);
      const permissions = permissionsOf(plugin.manifest, request);
      const release = await claims.take(executionId);
      try {
        return await plugins.execute(
          {
            executionId,
            plugin,
            handler,
            host: request.host,
            hostContext: request.hostContext,
            input: request.input,
            params: request.params,
            user: userOf(request, by),
            tenantId,
            requestId,
            traceId,
            permissions,
            schemas: request.schemas,
            ...(timeoutMs === undefined ? {} : { timeoutMs }),
            ...(by.records ? { recordedSpanId: spanId } : { parentSpanId: spanId }),
          },
          { ...options, ...(target ? { target } : {}) },
        );
      } finally {
        release();
      }
    },
  };
}

function namespaceOf({ tenantId }: DispatchRequest, { namespaceId }: Dispatcher): string {
  if (namespaceId === null) return tenantId ?? 'default';
  if (tenantId === undefined || tenantId === namespaceId) return namespaceId;
  throw new PlatformError(
    'FORBIDDEN',
    `This container runs for namespace ${namespaceId} and may not dispatch for ${tenantId}.`,
  );
}

/** A container cannot say that somebody else is calling. */
function userOf({ user }: DispatchRequest, { namespaceId }: Dispatcher): DispatchRequest['user'] {
  return namespaceId === null ? user : null;
}

/**
 * The permissions that the manifest declares for the handler. Where it declares several sets (two routes share a
 * handler), the one sent chooses among them; without one, the narrowest reading holds: the call is refused.
 */
function permissionsOf(manifest: ManifestV3, { handler, host, permissions }: DispatchRequest): Permissions {
  requireDeclaredHost(manifest, handler, host);
  const declared = declaredPermissions(manifest, handler, host);
  if (declared.length === 0) {
    throw new PlatformError(
      'INVALID_HANDLER',
      `The manifest of ${manifest.id} declares no handler "${handler}" for the host "${host}".`,
      { details: { pluginId: manifest.id, handler, host } },
    );
  }
  const [first] = declared as [Permissions, ...Permissions[]];
  const chosen = permissions
    ? declared.find((set) => isDeepStrictEqual(set, permissions))
    : declared.every((set) => isDeepStrictEqual(set, first)) && first;
  if (chosen) return chosen;
  throw new PlatformError(
    'PERMISSION_DENIED',
    permissions
      ? `The permissions sent are not those that ${manifest.id} declares for "${handler}".`
      : `${manifest.id} declares "${handler}" several times with different permissions; send those that are meant.`,
    { details: { pluginId: manifest.id, handler } },
  );
}
