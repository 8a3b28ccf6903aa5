import { CamelCasePlugin, Kysely, PostgresDialect, type Transaction } from 'kysely';
import pg from 'pg';
import type { Logger } from '../../kit/telemetry/logger.ts';
import type { PoolUse } from '../ports/index.ts';
import { ConnectionPool } from './connection-pool.ts';
import { namedSql, type Sql } from './named-sql.ts';
import { isRepeatable, postgresError } from './postgres-error.ts';
import type { Tables } from './tables.ts';

export interface PostgresOptions {
  /** URL in the form `postgres://user:password@host:port/database`. */
  url: string;
  logger: Logger;
  /** Name of the connections in `pg_stat_activity`. */
  applicationName: string;
  maxConnections?: number;
  /** Time limit of the server per statement. By default, it is shorter than `queryTimeoutMs`. */
  statementTimeoutMs?: number;
  /** Time for which the process waits for a statement. The default is 30 s. */
  queryTimeoutMs?: number;
}

/** Schema of all tables, so that the platform can share a database with other programs. */
export const SCHEMA = 'svc';

const MAX_CONNECTIONS = 10;
const RESERVED_CONNECTIONS = 2;
const LIST_CONNECTIONS = 3;
const CONNECT_TIMEOUT_MS = 5000;
/** Time limit per statement. Limits how long requests wait for an unreachable server. */
const QUERY_TIMEOUT_MS = 30_000;
/** Time limit for waiting for a free connection while the server answers. */
const MAX_WAIT_MS = 30_000;
/** Time limit for idle transactions. A transaction that stays open keeps PostgreSQL from removing dead rows. */
const IDLE_TRANSACTION_TIMEOUT_MS = 10_000;
/** The server cancels a statement before this process stops waiting for it, so that no unconfirmed statement commits. */
const SERVER_TIMEOUT_RATIO = 0.8;
const MAX_ATTEMPTS = 5;
/**
 * Statements look up few rows. Before a table has statistics, PostgreSQL overestimates their cost and compiles them, which
 * took 50 ms for each poll of the change feed.
 */
const SERVER_SETTINGS = '-c jit=off';

const INT8_OID = 20;
const NUMERIC_OID = 1700;

/**
 * Parsers for the number types that `pg` returns as text. The conversion is exact, because all numbers of the platform
 * (times, counts, positions) are safe integers.
 */
const types = {
  getTypeParser(oid: number, format?: 'text' | 'binary'): (value: string) => unknown {
    if (oid === INT8_OID || oid === NUMERIC_OID) return Number;
    return pg.types.getTypeParser(oid, format as 'text');
  },
};

export type Query = Kysely<Tables> | Transaction<Tables>;

/** Connections of one process to PostgreSQL. Failures that an operator can fix are converted to STORE_ERROR. */
export class PostgresDatabase {
  /** Host, port and database without credentials, for use in messages. */
  readonly server: string;
  readonly pool: ConnectionPool;
  readonly #kysely: Kysely<Tables>;
  readonly #options: PostgresOptions;
  #reserved: PostgresDatabase | undefined;
  #lists: PostgresDatabase | undefined;

  constructor(options: PostgresOptions) {
    const {
      url,
      logger,
      applicationName,
      maxConnections = MAX_CONNECTIONS,
      statementTimeoutMs,
      queryTimeoutMs = QUERY_TIMEOUT_MS,
    } = options;
    this.#options = options;
    this.server = serverOf(url);
    this.pool = new ConnectionPool({
      server: this.server,
      maxWaitMs: MAX_WAIT_MS,
      connectionString: url,
      max: maxConnections,
      application_name: applicationName,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: queryTimeoutMs,
      idle_in_transaction_session_timeout: IDLE_TRANSACTION_TIMEOUT_MS,
      statement_timeout: statementTimeoutMs ?? Math.round(queryTimeoutMs * SERVER_TIMEOUT_RATIO),
      keepAlive: true,
      options: SERVER_SETTINGS,
      types: types as pg.CustomTypesConfig,
    });
    // Without a listener, the loss of an idle connection would end the process. The pool replaces lost connections when
    // needed.
    this.pool.on('error', (error) => logger.warn('An idle connection to PostgreSQL was lost', { error }));
    this.#kysely = new Kysely<Tables>({
      dialect: new PostgresDialect({ pool: this.pool }),
      plugins: [new CamelCasePlugin({ maintainNestedObjectKeys: true })],
    }).withSchema(SCHEMA);
  }

  /**
   * Connections for leases, revocations and probes. On shared connections, a lease renewal could wait behind writes
   * until the lease expires.
   */
  get reserved(): PostgresDatabase {
    this.#reserved ??= new PostgresDatabase({ ...this.#options, maxConnections: RESERVED_CONNECTIONS });
    return this.#reserved;
  }

  /**
   * Connections for lists and searches. On shared connections, a few slow searches could keep deliveries from being
   * accepted. The server cancels searches whose caller has given up, because they keep dead rows from being removed.
   */
  get lists(): PostgresDatabase {
    this.#lists ??= new PostgresDatabase({
      ...this.#options,
      applicationName: `${this.#options.applicationName}-lists`,
      maxConnections: LIST_CONNECTIONS,
    });
    return this.#lists;
  }

  /** Returns the use of the pools that were opened. */
  pools(): PoolUse[] {
    return [
      { pool: 'main', ...this.pool.use },
      ...(this.#reserved ? [{ pool: 'leases' as const, ...this.#reserved.pool.use }] : []),
      ...(this.#lists ? [{ pool: 'lists' as const, ...this.#lists.pool.use }] : []),
    ];
  }

  /** Runs one statement. A write is durable when the promise resolves. */
  async run<Result>(statement: (query: Query) => Promise<Result>): Promise<Result> {
    try {
      return await statement(this.#kysely);
    } catch (error) {
      throw postgresError(this.server, error);
    }
  }

  /** Runs a transaction, and repeats the transaction after a conflict with a concurrent transaction. */
  transaction<Result>(work: (query: Transaction<Tables>) => Promise<Result>): Promise<Result> {
    return this.#repeated(() => this.#kysely.transaction().execute(work));
  }

  /** Runs one statement of hand-written SQL. Used on hot paths and for SQL that Kysely cannot express. */
  async sql<Row extends pg.QueryResultRow>(
    text: string,
    values: readonly unknown[] = [],
  ): Promise<pg.QueryResult<Row>> {
    try {
      return await this.pool.query<Row>(text, [...values]);
    } catch (error) {
      throw postgresError(this.server, error);
    }
  }

  /**
   * Runs a prepared statement. Each connection plans the statement only once. The statement must not scan a table,
   * because the plan does not change when tables grow.
   */
  async prepared<Row extends pg.QueryResultRow>(
    name: string,
    text: string,
    values: readonly unknown[],
  ): Promise<pg.QueryResult<Row>> {
    try {
      return await this.pool.query<Row>({ name, text, values: [...values] });
    } catch (error) {
      throw postgresError(this.server, error);
    }
  }

  /**
   * Runs a transaction of statements with named parameters. Repeats the transaction after a conflict with a concurrent
   * transaction, up to `MAX_ATTEMPTS` attempts in total.
   */
  transact<Result>(work: (sql: Sql) => Promise<Result>): Promise<Result> {
    return this.#repeated(() => this.#transactOnce(work));
  }

  /**
   * Runs one statement with named parameters as its own transaction, in one round trip. Repeats the statement after a
   * conflict with a concurrent transaction.
   */
  write<Result>(work: (sql: Sql) => Promise<Result>): Promise<Result> {
    return this.#repeated(() => work(namedSql(this.pool)));
  }

  /** Runs statements with named parameters, each in its own transaction. */
  async read<Result>(work: (sql: Sql) => Promise<Result>): Promise<Result> {
    try {
      return await work(namedSql(this.pool));
    } catch (error) {
      throw postgresError(this.server, error);
    }
  }

  async #repeated<Result>(work: () => Promise<Result>): Promise<Result> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        if (attempt === MAX_ATTEMPTS || !isRepeatable(error)) throw postgresError(this.server, error);
      }
    }
  }

  async #transactOnce<Result>(work: (sql: Sql) => Promise<Result>): Promise<Result> {
    const client = await this.pool.connect();
    let failure: Error | undefined;
    try {
      await client.query('begin');
      const result = await work(namedSql(client));
      await client.query('commit');
      return result;
    } catch (error) {
      // If even the rollback fails, the connection is closed instead of reused.
      await client.query('rollback').catch((lost: Error) => {
        failure = lost;
      });
      throw error;
    } finally {
      client.release(failure);
    }
  }

  /** Resolves when the server has answered a read. */
  async probeReads(): Promise<void> {
    await this.sql('select');
  }

  /**
   * Resolves when the server accepts writes. The statement changes no row, but a standby server rejects the statement.
   */
  async probeWrites(): Promise<void> {
    await this.sql('delete from svc.schema_version where false');
  }

  /** Waits for running statements, then closes all connections. */
  async close(): Promise<void> {
    await Promise.all([this.#closePool(), this.#reserved?.close(), this.#lists?.close()]);
  }

  /** Kysely ends the pool only if it has run a statement. */
  async #closePool(): Promise<void> {
    await this.#kysely.destroy();
    if (!this.pool.ending) await this.pool.end();
  }
}

function serverOf(url: string): string {
  const { host, pathname } = new URL(url);
  return `${host}${pathname}`;
}
