import type pg from 'pg';

/**
 * Runs one statement with named parameters (`:name`) and returns its rows. With `prepareAs`, each connection plans the
 * statement only once. Such a statement must not scan a table, because the plan does not change when tables grow.
 */
export type Sql = <Row extends object>(text: string, values?: object, prepareAs?: string) => Promise<Row[]>;

interface Compiled {
  text: string;
  names: string[];
}

/** Matches a parameter name after a single colon. Two colons are a type cast. */
const PARAMETER = /(?<!:):([a-zA-Z]\w*)/g;

/** Compiled statements by text. Statements are constants of the program, so the map stays small. */
const compiled = new Map<string, Compiled>();

/** Returns a function that runs statements with named parameters on a pool or a connection. */
export function namedSql(client: Pick<pg.Pool, 'query'>): Sql {
  return async <Row extends object>(
    text: string,
    values: object = {},
    prepareAs?: string,
  ): Promise<Row[]> => {
    const statement = compiled.get(text) ?? compile(text);
    const given = values as Record<string, unknown>;
    const result = await client.query<Row & pg.QueryResultRow>({
      ...(prepareAs !== undefined && { name: prepareAs }),
      text: statement.text,
      values: statement.names.map((name) => parameterOf(given, name)),
    });
    return result.rows;
  };
}

function compile(text: string): Compiled {
  const names: string[] = [];
  const numbered = text.replaceAll(PARAMETER, (_, name: string) => {
    if (!names.includes(name)) names.push(name);
    return `$${names.indexOf(name) + 1}`;
  });
  const statement = { text: numbered, names };
  compiled.set(text, statement);
  return statement;
}

function parameterOf(values: Record<string, unknown>, name: string): unknown {
  if (!(name in values)) throw new Error(`The statement has a parameter ':${name}', which was not given.`);
  return values[name];
}
