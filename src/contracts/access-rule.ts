import type { Role } from './role.ts';

/** Access rule of an endpoint. @spec docs/gateway.md "Roles" */
export interface AccessRule {
  /**
   * The role that the endpoint needs. `caller` allows every authenticated caller, `open` needs no token, and `service`
   * needs the secret of the platform.
   */
  readonly needs: Role | 'caller' | 'open' | 'service';
  /** Whether the call acts beyond one namespace. The role must then be given for all namespaces. */
  readonly isGlobal?: boolean;
  /**
   * The scope that allows a client with scopes to call the endpoint. Without it, such clients are refused. `{name}` is
   * replaced by a path parameter.
   */
  readonly scope?: string;
  /** Whether the token of a portal link may make the call, for its own application. */
  readonly isPortal?: boolean;
  /** Action in the audit log. Calls without an action are not recorded. */
  readonly audit?: string;
  /**
   * Object in the audit log. `{name}` is replaced by a path parameter, or else by a field of the body, the query
   * or the reply. `{a|b}` takes the first that is present.
   */
  readonly object?: string;
  /** Whether calls with `dryRun: true` in their body change nothing, and are therefore not recorded. */
  readonly hasDryRun?: boolean;
}

export const OPEN: AccessRule = { needs: 'open' };
export const SERVICE: AccessRule = { needs: 'service' };
export const CALLER: AccessRule = { needs: 'caller' };
export const VIEWER: AccessRule = { needs: 'viewer' };
export const EDITOR: AccessRule = { needs: 'editor' };
export const DELIVERIES: AccessRule = { needs: 'viewer', scope: 'deliveries:read' };

/** Lets tokens of portal links make the call, too. Its handler must respect `application` of the caller. */
export const portal = (rule: AccessRule): AccessRule => ({ ...rule, isPortal: true });

export const QUEUE_SCOPE = 'queue:{name}';
export const QUEUE_PROGRAM: AccessRule = { needs: 'editor', scope: QUEUE_SCOPE };
export const QUEUE_READER: AccessRule = { needs: 'viewer', scope: QUEUE_SCOPE };

export const edits = (audit: string, object: string): AccessRule => ({ needs: 'editor', audit, object });
export const administers = (audit: string, object: string): AccessRule => ({ needs: 'admin', audit, object });
export const governs = (audit: string, object: string): AccessRule => ({
  ...administers(audit, object),
  isGlobal: true,
});

export const WEBHOOK = 'webhook:{pluginId}/{event}/{instanceId}';
export const SOURCE = 'source:{name}';
export const QUEUE = 'queue:{name}';
export const QUEUE_ITEM = 'queue:{name}/{id}';
export const CONNECTION = 'connection:{name}';
export const SECRET = 'secret:{name}';
export const ALERT_RULE = 'alert-rule:{name}';
export const ALERT_CHANNEL = 'alert-channel:{name}';
export const APPLICATION = 'application:{application}';
export const ROLE = 'role:{subject}';
export const PLUGIN = 'plugin:{pluginId|id|source|folder}';
export const RUN = 'run:{runId}';
export const ENDPOINT = 'endpoint:{id}';
export const MESSAGE = 'message:{id}';
export const PUBLISHER: AccessRule = { needs: 'editor', scope: 'messages:send' };
