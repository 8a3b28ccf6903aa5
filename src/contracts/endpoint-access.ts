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

const OPEN: AccessRule = { needs: 'open' };
const SERVICE: AccessRule = { needs: 'service' };
const CALLER: AccessRule = { needs: 'caller' };
const VIEWER: AccessRule = { needs: 'viewer' };
const EDITOR: AccessRule = { needs: 'editor' };
const DELIVERIES: AccessRule = { needs: 'viewer', scope: 'deliveries:read' };

/** Lets tokens of portal links make the call, too. Its handler must respect `application` of the caller. */
const portal = (rule: AccessRule): AccessRule => ({ ...rule, isPortal: true });

const QUEUE_SCOPE = 'queue:{name}';
const QUEUE_PROGRAM: AccessRule = { needs: 'editor', scope: QUEUE_SCOPE };
const QUEUE_READER: AccessRule = { needs: 'viewer', scope: QUEUE_SCOPE };

const edits = (audit: string, object: string): AccessRule => ({ needs: 'editor', audit, object });
const administers = (audit: string, object: string): AccessRule => ({ needs: 'admin', audit, object });
const governs = (audit: string, object: string): AccessRule => ({
  ...administers(audit, object),
  isGlobal: true,
});

const WEBHOOK = 'webhook:{pluginId}/{event}/{instanceId}';
const SOURCE = 'source:{name}';
const QUEUE = 'queue:{name}';
const QUEUE_ITEM = 'queue:{name}/{id}';
const CONNECTION = 'connection:{name}';
const SECRET = 'secret:{name}';
const ALERT_RULE = 'alert-rule:{name}';
const ALERT_CHANNEL = 'alert-channel:{name}';
const APPLICATION = 'application:{application}';
const ROLE = 'role:{subject}';
const PLUGIN = 'plugin:{pluginId|id|source|folder}';
const RUN = 'run:{runId}';
const ENDPOINT = 'endpoint:{id}';
const MESSAGE = 'message:{id}';
const PUBLISHER: AccessRule = { needs: 'editor', scope: 'messages:send' };

/** Access rule of every endpoint, by method and path. A test compares the table with the endpoints. */
export const ENDPOINT_ACCESS: Readonly<Record<string, AccessRule>> = {
  'GET /health': OPEN,
  'GET /api/v1/health': OPEN,
  'GET /ready': OPEN,
  'GET /api/v1/ready': OPEN,
  'POST /auth/token': OPEN,
  'POST /auth/refresh': OPEN,
  'POST /webhooks/:pluginId/:event': OPEN,
  'POST /webhooks/:pluginId/:event/:instanceId': OPEN,
  'POST /mcp': CALLER,
  'GET /.well-known/oauth-protected-resource/mcp': OPEN,
  'GET /api/v1/node': { needs: 'admin', isGlobal: true },
  'GET /api/v1/whoami': CALLER,
  'POST /api/v1/studio/links': CALLER,
  'POST /studio/session': OPEN,
  'GET /studio/session': OPEN,
  'DELETE /studio/session': CALLER,
  'GET /studio/sign-in/options': OPEN,

  'POST /internal/dispatch': SERVICE,
  'POST /internal/plugins/reread': SERVICE,
  'GET /internal/plugins/:pluginId/webhooks': SERVICE,
  'POST /internal/plugins/:pluginId/messages': SERVICE,
  'POST /internal/deliveries/attempts': SERVICE,
  'POST /internal/deliveries/scheduler': SERVICE,
  'POST /internal/deliveries/notice': SERVICE,
  'POST /internal/processes/reread': SERVICE,
  'GET /internal/processes/metrics': SERVICE,
  'GET /internal/workflows/triggers': SERVICE,
  'POST /internal/workflows/deliveries': SERVICE,
  'POST /internal/workflows/facts': SERVICE,
  'POST /internal/workflows/approvals': SERVICE,
  'POST /internal/workflows/notices': SERVICE,
  'GET /internal/workflows/traces/:traceId': SERVICE,
  'POST /internal/workflows/steps/enter': SERVICE,
  'POST /internal/workflows/steps/recall': SERVICE,
  'POST /internal/workflows/steps/settle': SERVICE,
  'POST /internal/workflows/steps/begin': SERVICE,
  'POST /internal/workflows/steps/watch': SERVICE,

  'GET /api/v1/access/roles': VIEWER,
  'PUT /api/v1/access/roles': governs('role.grant', ROLE),
  'DELETE /api/v1/access/roles': governs('role.revoke', ROLE),
  'GET /api/v1/clients': VIEWER,
  'POST /api/v1/clients': governs('client.create', 'client:{clientId}'),
  'DELETE /api/v1/clients/:clientId': governs('client.revoke', 'client:{clientId}'),
  'PUT /api/v1/clients/:clientId/scopes': governs('client.scopes', 'client:{clientId}'),
  'GET /api/v1/tokens': VIEWER,
  'POST /api/v1/tokens': governs('token.mint', 'token:{jti}'),
  'DELETE /api/v1/tokens/:jti': governs('token.revoke', 'token:{jti}'),
  'POST /hosts/register': governs('host.register', 'host:{hostId}'),
  'POST /api/v1/hosts/invite': governs('host.invite', 'namespace:{namespaceId}'),
  'GET /api/v1/hosts': VIEWER,
  'GET /api/v1/hosts/:hostId': VIEWER,
  'DELETE /api/v1/hosts/:hostId': governs('host.revoke', 'host:{hostId}'),
  'GET /api/v1/audit': VIEWER,
  'GET /api/v1/audit/verify': { needs: 'admin', isGlobal: true },

  'GET /api/v1/webhooks': VIEWER,
  'GET /api/v1/webhooks/rotation': VIEWER,
  'GET /api/v1/webhooks/providers': VIEWER,
  'GET /api/v1/webhooks/providers/:id': VIEWER,
  'POST /api/v1/webhooks/provision': administers('webhook.provision', WEBHOOK),
  'POST /api/v1/webhooks/expect-secret': administers('webhook.expect_secret', WEBHOOK),
  'DELETE /api/v1/webhooks/:pluginId/:event': administers('webhook.revoke', WEBHOOK),
  'DELETE /api/v1/webhooks/:pluginId/:event/:instanceId': administers('webhook.revoke', WEBHOOK),
  'POST /api/v1/webhooks/pause': edits('webhook.pause', WEBHOOK),
  'POST /api/v1/webhooks/resume': edits('webhook.resume', WEBHOOK),
  'POST /api/v1/webhooks/send': edits('webhook.send', WEBHOOK),
  'GET /api/v1/webhooks/deliveries': DELIVERIES,
  'GET /api/v1/webhooks/deliveries/counts': DELIVERIES,
  'GET /api/v1/webhooks/deliveries/:webhookId': DELIVERIES,
  'GET /api/v1/webhooks/deliveries/stream': DELIVERIES,
  'POST /api/v1/webhooks/deliveries/replay': { ...edits('delivery.replay', 'deliveries'), hasDryRun: true },
  'POST /api/v1/webhooks/deliveries/:webhookId/replay': edits('delivery.replay', 'delivery:{webhookId}'),
  'POST /api/v1/webhooks/deliveries/:webhookId/trust': administers('delivery.trust', 'delivery:{webhookId}'),

  'GET /api/v1/sources': VIEWER,
  'GET /api/v1/sources/:name': VIEWER,
  'POST /api/v1/sources': edits('source.create', SOURCE),
  'PATCH /api/v1/sources/:name': edits('source.update', SOURCE),
  'DELETE /api/v1/sources/:name': edits('source.delete', SOURCE),
  'POST /api/v1/sources/:name/rotate': edits('source.rotate', SOURCE),
  'POST /api/v1/sources/:name/expect-secret': edits('source.expect_secret', SOURCE),
  'POST /api/v1/sources/:name/pause': edits('source.pause', `${SOURCE}/{destination}`),
  'POST /api/v1/sources/:name/resume': edits('source.resume', `${SOURCE}/{destination}`),
  'POST /api/v1/sources/:name/replay': edits('source.replay', 'delivery:{webhookId}'),
  'POST /api/v1/sources/:name/destinations': edits('source.connect', SOURCE),
  'PATCH /api/v1/sources/:name/destinations/:destination': edits('source.connect', `${SOURCE}/{destination}`),
  'DELETE /api/v1/sources/:name/destinations/:destination': edits(
    'source.disconnect',
    `${SOURCE}/{destination}`,
  ),

  'GET /api/v1/connection-providers': VIEWER,
  'GET /api/v1/connections': VIEWER,
  'GET /api/v1/connections/:name': VIEWER,
  'POST /api/v1/connections': administers('connection.create', CONNECTION),
  'POST /api/v1/connections/:name/authorize': administers('connection.authorize', CONNECTION),
  'POST /api/v1/connections/:name/refresh': administers('connection.refresh', CONNECTION),
  'POST /api/v1/connections/:name/revoke': administers('connection.revoke', CONNECTION),
  'DELETE /api/v1/connections/:name': administers('connection.delete', CONNECTION),
  'POST /internal/connections/token': SERVICE,

  'GET /api/v1/queues': VIEWER,
  'GET /api/v1/queues/:name': QUEUE_READER,
  'PUT /api/v1/queues/:name/settings': administers('queue.configure', QUEUE),
  'POST /api/v1/queues/:name/lease': QUEUE_PROGRAM,
  'POST /api/v1/queues/:name/ack': QUEUE_PROGRAM,
  'POST /api/v1/queues/:name/nack': QUEUE_PROGRAM,
  'POST /api/v1/queues/:name/extend': QUEUE_PROGRAM,
  'POST /api/v1/queues/:name/items': QUEUE_PROGRAM,
  'GET /api/v1/queues/:name/items': QUEUE_READER,
  'GET /api/v1/queues/:name/items/:id': QUEUE_READER,
  'POST /api/v1/queues/:name/items/:id/retry': edits('queue.retry', QUEUE_ITEM),
  'POST /api/v1/queues/:name/retry-dead': { ...edits('queue.retry', QUEUE), hasDryRun: true },
  'DELETE /api/v1/queues/:name/items/:id': edits('queue.delete', QUEUE_ITEM),
  'DELETE /api/v1/queues/:name/items': administers('queue.purge', QUEUE),

  'GET /api/v1/portal': portal(VIEWER),
  'GET /api/v1/endpoints/portal': VIEWER,
  'POST /api/v1/endpoints/portal': edits('portal.create', APPLICATION),
  'DELETE /api/v1/endpoints/portal': edits('portal.revoke', 'application:{application|id}'),
  'GET /api/v1/endpoints': portal(VIEWER),
  'GET /api/v1/endpoints/:id': portal(VIEWER),
  'GET /api/v1/endpoints/:id/attempts': portal(VIEWER),
  'POST /api/v1/endpoints': portal(edits('endpoint.create', ENDPOINT)),
  'PATCH /api/v1/endpoints/:id': portal(edits('endpoint.update', ENDPOINT)),
  'DELETE /api/v1/endpoints/:id': portal(edits('endpoint.delete', ENDPOINT)),
  'POST /api/v1/endpoints/:id/rotate': portal(edits('endpoint.rotate', ENDPOINT)),
  'POST /api/v1/endpoints/:id/test': portal(edits('endpoint.test', ENDPOINT)),
  'POST /api/v1/endpoints/:id/replay': portal({ ...edits('message.replay', ENDPOINT), hasDryRun: true }),

  'GET /api/v1/event-types': VIEWER,
  'POST /api/v1/messages': PUBLISHER,
  'GET /api/v1/messages': portal(VIEWER),
  'GET /api/v1/messages/:id': portal(VIEWER),
  'GET /api/v1/messages/:id/attempts': portal(VIEWER),
  'POST /api/v1/messages/:id/replay': portal(edits('message.replay', MESSAGE)),
  'POST /api/v1/messages/replay': { ...edits('message.replay', 'messages'), hasDryRun: true },

  'POST /internal/secrets/resolve': SERVICE,
  'GET /api/v1/secrets': VIEWER,
  'PUT /api/v1/secrets/:name': administers('secret.set', SECRET),
  'DELETE /api/v1/secrets/:name': administers('secret.revoke', SECRET),

  'GET /api/v1/alerts': VIEWER,
  'GET /api/v1/alerts/:id': VIEWER,
  'POST /api/v1/alerts/:id/acknowledge': edits('alert.acknowledge', 'alert:{id}'),
  'POST /api/v1/alerts/:id/resolve': edits('alert.resolve', 'alert:{id}'),
  'POST /api/v1/alerts/test': edits('alert.test', 'alerts:{channel|rule}'),
  'GET /api/v1/alerts/rules': VIEWER,
  'GET /api/v1/alerts/rules/:name': VIEWER,
  'POST /api/v1/alerts/rules': edits('alert_rule.create', ALERT_RULE),
  'PATCH /api/v1/alerts/rules/:name': edits('alert_rule.update', ALERT_RULE),
  'DELETE /api/v1/alerts/rules/:name': edits('alert_rule.delete', ALERT_RULE),
  'GET /api/v1/alerts/channels': VIEWER,
  'GET /api/v1/alerts/channels/:name': VIEWER,
  'POST /api/v1/alerts/channels': administers('alert_channel.create', ALERT_CHANNEL),
  'PATCH /api/v1/alerts/channels/:name': administers('alert_channel.update', ALERT_CHANNEL),
  'DELETE /api/v1/alerts/channels/:name': administers('alert_channel.delete', ALERT_CHANNEL),
  'GET /api/v1/alerts/silences': VIEWER,
  'POST /api/v1/alerts/silences': edits('alert_silence.create', 'alert-silence:{id}'),
  'DELETE /api/v1/alerts/silences/:id': edits('alert_silence.delete', 'alert-silence:{id}'),

  'GET /api/v1/workflows': VIEWER,
  'POST /api/v1/workflows/:workflowId/approve-secrets': administers(
    'workflow.approve_secrets',
    'workflow:{workflowId}',
  ),
  'GET /api/v1/workflows/runs': VIEWER,
  'GET /api/v1/workflows/runs/counts': VIEWER,
  'POST /api/v1/workflows/runs': EDITOR,
  'GET /api/v1/workflows/runs/:runId': VIEWER,
  'DELETE /api/v1/workflows/runs/:runId': edits('run.cancel', RUN),
  'POST /workflows/runs/:runId/cancel': edits('run.cancel', RUN),
  'POST /api/v1/workflows/runs/:runId/cancel': edits('run.cancel', RUN),
  'POST /api/v1/workflows/runs/:runId/rerun': edits('run.rerun', RUN),
  'POST /api/v1/workflows/runs/:runId/rerun/preview': EDITOR,
  'POST /api/v1/workflows/runs/cancel': { ...edits('run.cancel', 'runs'), hasDryRun: true },
  'POST /api/v1/workflows/runs/rerun': { ...edits('run.rerun', 'runs'), hasDryRun: true },
  'GET /api/v1/workflows/runs/:runId/logs': VIEWER,
  'GET /api/v1/workflows/runs/:runId/events': VIEWER,
  'GET /api/v1/workflows/runs/:runId/steps': VIEWER,
  'POST /api/v1/workflows/runs/:runId/approvals/:stepId': edits('run.approve', 'run:{runId}/{stepId}'),
  'POST /api/v1/workflows/runs/:runId/signals/:name': EDITOR,
  'POST /api/v1/workflows/runs/:runId/steps/:stepId/decision': edits('run.decide', 'run:{runId}/{stepId}'),
  'POST /api/v1/workflows/decisions': edits('run.decide', 'runs'),
  'GET /api/v1/workflows/schedules': VIEWER,
  'POST /api/v1/workflows/schedules/:scheduleId/pause': edits('schedule.pause', 'schedule:{scheduleId}'),
  'POST /api/v1/workflows/schedules/:scheduleId/resume': edits('schedule.resume', 'schedule:{scheduleId}'),
  'POST /api/v1/workflows/schedules/:scheduleId/trigger': edits('schedule.trigger', 'schedule:{scheduleId}'),
  'POST /api/v1/jobs': EDITOR,
  'GET /api/v1/jobs': VIEWER,
  'GET /api/v1/jobs/:jobId': VIEWER,
  'DELETE /api/v1/jobs/:jobId': edits('job.cancel', 'job:{jobId}'),
  'GET /api/v1/commands': VIEWER,
  'GET /api/v1/commands/:pluginId/:commandId': VIEWER,
  'POST /api/v1/commands/:pluginId/:commandId': EDITOR,

  'GET /api/v1/marketplace/plugins': VIEWER,
  'GET /api/v1/marketplace/plugins/:pluginId': VIEWER,
  'GET /api/v1/marketplace/plugins/:pluginId/package': VIEWER,
  'POST /api/v1/marketplace/plans': { needs: 'admin', isGlobal: true },
  'POST /api/v1/marketplace/plugins': governs('plugin.install', PLUGIN),
  'DELETE /api/v1/marketplace/plugins/:pluginId': governs('plugin.uninstall', PLUGIN),
  'POST /api/v1/marketplace/plugins/:pluginId/update': governs('plugin.update', PLUGIN),
  'POST /api/v1/marketplace/plugins/:pluginId/enable': governs('plugin.enable', PLUGIN),
  'POST /api/v1/marketplace/plugins/:pluginId/disable': governs('plugin.disable', PLUGIN),
  'POST /api/v1/marketplace/links': governs('plugin.link', PLUGIN),
  'DELETE /api/v1/marketplace/links/:pluginId': governs('plugin.unlink', PLUGIN),
  'POST /api/v1/marketplace/reload': governs('plugin.reload', 'plugins'),

  'GET /api/v1/routes': VIEWER,
  'GET /api/v1/traces/:traceId': VIEWER,
  'GET /api/v1/logs': VIEWER,
  'GET /api/v1/analytics/events': VIEWER,
  'GET /api/v1/analytics/stats': VIEWER,
  'GET /api/v1/analytics/daily': VIEWER,
  'GET /api/v1/analytics/stats/daily': VIEWER,
  'GET /api/v1/analytics/permission-uses': VIEWER,

  'GET /api/v1/state/:namespace/:key': SERVICE,
  'PUT /api/v1/state/:namespace/:key': SERVICE,
  'DELETE /api/v1/state/:namespace/:key': SERVICE,
  'POST /api/v1/state/:namespace/:key/increment': SERVICE,
  'GET /api/v1/state/:namespace': SERVICE,
  'GET /api/v1/storage/:namespace/:key': SERVICE,
  'PUT /api/v1/storage/:namespace/:key': SERVICE,
  'DELETE /api/v1/storage/:namespace/:key': SERVICE,
  'GET /api/v1/storage/:namespace/:key/stat': SERVICE,
  'GET /api/v1/storage/:namespace': SERVICE,
  'PUT /api/v1/vectors/:namespace/:collection': SERVICE,
  'POST /api/v1/vectors/:namespace/:collection/search': SERVICE,
  'POST /api/v1/vectors/:namespace/:collection/delete': SERVICE,
};

/** Rule of a WebSocket, which can carry calls of any kind. */
export const SOCKET_ACCESS: AccessRule = EDITOR;

/**
 * Returns the rule of a route without an endpoint. Plugin routes need an editor if they can change data. Unknown routes
 * need an administrator for that.
 */
export function undeclaredAccess(method: string, isPluginRoute: boolean): AccessRule {
  if (method === 'GET' || method === 'HEAD' || method === 'OPTIONS') return VIEWER;
  return isPluginRoute ? EDITOR : { needs: 'admin', isGlobal: true };
}
