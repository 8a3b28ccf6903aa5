export { PostgresDatabase, type PostgresOptions } from './database.ts';
export { migratePostgres, readSchemaState, requireUsableSchema } from './migrate.ts';
