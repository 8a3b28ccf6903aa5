export { PostgresDatabase, type PostgresOptions } from './database.ts';
export { databaseHealth } from './database-health.ts';
export { lockOutNodes, postgresSealedSecrets } from './gateway/sealed-secrets.ts';
export { type PostgresGatewayOptions, postgresCache, postgresGatewayStore } from './gateway/store.ts';
export { adoptDatabase, isCopy, requireOriginal } from './identity.ts';
export { type MemberOverview, memberOverview } from './member-overview.ts';
export { PostgresMembers } from './members.ts';
export {
  type Migrated,
  membersText,
  migratePostgres,
  readSchemaState,
  requireUsableSchema,
} from './migrate.ts';
export { CURRENT_SCHEMA } from './migrations.ts';
export { PostgresRateCounters } from './rate-counters.ts';
export { postgresSharedPlugins } from './shared-plugins.ts';
export { postgresStateStore } from './state/store.ts';
export { postgresTelemetryStore } from './telemetry/store.ts';
export { postgresWorkflowStore } from './workflow/store.ts';
