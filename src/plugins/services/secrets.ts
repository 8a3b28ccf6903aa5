import { SecretName } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { PlatformService } from '../execution.ts';
import { parsedArgument } from './arguments.ts';
import { type CallScope, callScope } from './call-scope.ts';

/** Reads the secrets of tenants. The gateway stores them. */
export interface SecretAccess {
  /**
   * Returns the newest values of the tenant's secrets by name, without those that do not exist. `isUse` false does not
   * count as a use.
   */
  read(scope: CallScope, names: readonly string[], isUse?: boolean): Promise<ReadonlyMap<string, string>>;
}

/**
 * Creates `ctx.secrets`. `get` throws PERMISSION_DENIED if the permissions of the handler do not list the name, and
 * NOT_FOUND if the tenant has no such secret.
 */
export function createSecretsService(secrets: SecretAccess): PlatformService {
  return {
    async get(context, [given]) {
      const name = parsedArgument(SecretName, given, 'the name of the secret');
      const { permissions, plugin } = context.request;
      if (permissions.secrets?.includes(name) !== true)
        throw new PlatformError(
          'PERMISSION_DENIED',
          `The plugin ${plugin.id} may not read the secret ${name}: its manifest must list it under permissions.secrets.`,
          { details: { permission: `permissions.secrets ${name}` } },
        );
      const scope = callScope(context);
      const value = (await secrets.read(scope, [name])).get(name);
      if (value === undefined) throw secretMissing(scope.tenantId, name);
      return value;
    },
  };
}

/** Returns the error for a secret that the tenant does not have. */
export function secretMissing(tenantId: string, name: string): PlatformError {
  const hint = `svc secrets set ${name} --tenant ${tenantId}`;
  // Details do not survive a handler that does not catch the error, so the message names the command.
  const message = `The namespace ${tenantId} has no secret ${name}. Set it with ${hint}.`;
  return new PlatformError('NOT_FOUND', message, { details: { secret: name, hint } });
}
