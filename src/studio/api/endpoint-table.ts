/** Method and path of an endpoint, and the query parameter that restricts a list to one namespace. */
type Row = readonly [method: string, path: string, namespaceParameter?: string];

const rows: Record<string, Row> = {};

/** Adds endpoints by their names in the contracts. The build adds such a call to each module that names endpoints. */
export function addEndpoints(added: Readonly<Record<string, Row>>): void {
  Object.assign(rows, added);
}

/** Returns an endpoint that a loaded module names. */
export function endpointOf(name: string): Row {
  return rows[name]!;
}
