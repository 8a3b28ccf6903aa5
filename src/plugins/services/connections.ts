import { ConnectionName } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { PlatformService } from '../execution.ts';
import { parsedArgument } from './arguments.ts';
import { type CallScope, callScope } from './call-scope.ts';

/** Gives out access tokens of connections. The gateway stores and refreshes them. */
export interface ConnectionAccess {
  /** Throws NOT_FOUND, CONNECTION_NOT_AUTHORIZED or CONNECTION_UNAVAILABLE. */
  token(scope: CallScope, name: string): Promise<string>;
}

/**
 * Creates `ctx.connections`. `token` throws PERMISSION_DENIED if the permissions of the handler do not list the name.
 * Plugin code never gets a refresh token or a client secret.
 */
export function createConnectionsService(connections: ConnectionAccess): PlatformService {
  return {
    async token(context, [given]) {
      const name = parsedArgument(ConnectionName, given, 'the name of the connection');
      const { permissions, plugin } = context.request;
      if (permissions.connections?.includes(name) !== true)
        throw new PlatformError(
          'PERMISSION_DENIED',
          `The plugin ${plugin.id} may not use the connection ${name}: its manifest must list it under permissions.connections.`,
          { details: { permission: `permissions.connections ${name}` } },
        );
      return connections.token(callScope(context), name);
    },
  };
}
