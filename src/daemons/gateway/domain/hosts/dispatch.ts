import { isDeepStrictEqual } from 'node:util';
import type { CommandResult, DispatchRequest, ManifestV3, Permissions } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import { declaredPermissions, type RunOptions, requireDeclaredHost } from '../../../../plugins/index.ts';
import type { PluginRuntime } from '../../../plugin-runtime/runtime.ts';
import type { ExecutionClaims } from './execution-claims.ts';

/** Caller of a dispatch. A service can act for any namespace. A container can act only for its own namespace. */
export interface Dispatcher {
  /** Namespace for which the caller is allowed to dispatch, or null for all namespaces. */
  namespaceId: string | null;
  /** Whether the caller records the events, metrics and spans of its executions. */
  records: boolean;
}

export interface DispatchDeps {
  plugins: PluginRuntime;
  claims: ExecutionClaims;
}

/** A dispatch request whose missing ids have been generated. */
export type NamedRequest = DispatchRequest &
  Record<'executionId' | 'requestId' | 'traceId' | 'spanId', string>;

export interface Dispatch {
  /**
   * Runs the handler. Throws CONFLICT if an execution with this id is already running, and rethrows errors of the
   * execution.
   */
  run(
    request: NamedRequest,
    by: Dispatcher,
    options: Pick<RunOptions, 'signal' | 'stream' | 'onBegun' | 'isOwnerCall'>,
  ): Promise<CommandResult>;
}

/**
 * Runs plugin handlers for other services and for containers. The plugin's folder, configuration and permissions come
 * from the plugin registry, because callers could forge these values. @spec Internal dispatch
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
      // The gateway that sent an owner call holds the claim. Only services have the key that proves it.
      const isOwnerCall = options.isOwnerCall === true && by.records;
      const release = isOwnerCall ? () => {} : await claims.take(executionId);
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
          { ...options, isOwnerCall, ...(target ? { target } : {}) },
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

/** Returns the user of the request. Returns null for a container, because containers must not act for users. */
function userOf({ user }: DispatchRequest, { namespaceId }: Dispatcher): DispatchRequest['user'] {
  return namespaceId === null ? user : null;
}

/**
 * Returns the permissions that the manifest declares for the handler. If the manifest declares several permission sets
 * for the handler, the request must contain one of these sets.
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
      : `${manifest.id} declares "${handler}" several times with different permissions; send the intended set.`,
    { details: { pluginId: manifest.id, handler } },
  );
}
